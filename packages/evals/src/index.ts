export { type CaseCall, collectCases, type CollectOptions, type EvalCase, readCases } from './case.ts'
export {
  defineEvaluation,
  evaluate,
  type EvaluatedRun,
  type EvaluateOptions,
  type Evaluation,
  type EvaluationSource,
  type GivenScore,
} from './evaluate.ts'
export { judge, type JudgeOptions } from './judge.ts'
export {
  type EvaluationReport,
  formatReport,
  type Measured,
  type NotedRun,
  type NotedRuns,
} from './report.ts'
export {
  contains,
  exact,
  regex,
  schema,
  type Score,
  type ScoredRun,
  type Scorer,
  toolCalls,
  type ToolCallsOptions,
} from './scorers.ts'
export type { Arming, Stub } from './served-agent.ts'
export type { Estimate } from './statistics.ts'
