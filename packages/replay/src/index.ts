export {
  type Difference,
  diffRuns,
  selectDifferences,
  type RunsDiff,
  type RunSpending,
  type RunTail,
} from './diff.ts'
export { replayRun, type Divergence, type ReplayOptions, type ReplayReport } from './replay.ts'
export {
  exportRegression,
  type Regression,
  type RegressionAgents,
  type RegressionContext,
  type RegressionOptions,
  type RegressionReport,
  type RegressionSetup,
  replayRegression,
  type ReplayRegressionOptions,
} from './regression.ts'
export {
  explain,
  type ExplainedAttempt,
  type ExplainedItem,
  type Explanation,
  type ReplacedMessage,
} from './explain.ts'
