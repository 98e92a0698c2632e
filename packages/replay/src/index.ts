export * from './compare.ts'
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
