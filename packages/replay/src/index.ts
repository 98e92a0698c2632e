export { diffRuns, type RunsDiff, type RunSpending, type RunTail } from './diff/diff-runs.ts'
export { reportedDifferences, type Difference } from './diff/difference.ts'
export { replayRun, type Divergence, type ReplayOptions, type ReplayReport } from './replay/replay.ts'
export { exportRegression, type Regression, type RegressionOptions } from './regression/regression.ts'
export {
  replayRegression,
  type ReplayRegressionOptions,
  type RegressionReport,
  type RegressionAgents,
  type RegressionContext,
  type RegressionSetup,
} from './regression/replay-regression.ts'
export { explain } from './explain/explain.ts'
export type { ExplainedAttempt, ExplainedItem, Explanation, ReplacedMessage } from './explain/explanation.ts'
