export * from './compare.ts'
export { replayRun, type Divergence, type ReplayOptions, type ReplayReport } from './replay.ts'
export {
  exportRegression,
  formatRegression,
  type Regression,
  type RegressionAgents,
  type RegressionContext,
  type RegressionOptions,
  type RegressionReport,
  type RegressionSetup,
  type RegressionText,
  replayRegression,
  type ReplayRegressionOptions,
} from './regression.ts'
export { maskSecrets } from './secrets.ts'
