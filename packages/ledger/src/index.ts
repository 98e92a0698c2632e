export { verifierKeyOf } from './checkpoint-note.ts'
export { writeCheckpoint, type Checkpoint, type CheckpointOptions } from './checkpoint.ts'
export {
  verifyCheckpoints,
  type CheckpointFault,
  type CheckpointsVerdict,
  type VerifyCheckpointsOptions,
} from './verify-checkpoints.ts'
export { exportEvents } from './export-events.ts'
export { ExportedHistories } from './shared-history.ts'
export { importEvents, type ImportOptions, type ImportReport, type ImportedRun } from './import-events.ts'
export { linesOf } from './lines-of.ts'
export { foldTo, type FoldOptions } from './fold-to.ts'
export type {
  ListedRun,
  NamedCall,
  RunSummary,
  RunWaits,
  Standing,
  UnreadableRun,
} from './projection/run-summary.ts'
export type { CallCount } from './projection/call-counts.ts'
export { fitsFilter, runSummaries, runSummary, type SummaryFilter } from './projection/run-summaries.ts'
export { ledgerStats } from './projection/ledger-stats.ts'
export type { DaySpending, LedgerStats, SessionTotals, StatsQuery } from './projection/stats.ts'
export { projectionLag, type ProjectionOptions } from './projection/behind.ts'
export { rebuildProjections, type RebuildReport } from './projection/rebuild-projections.ts'
export { rebuiltRequest, type RebuiltRequest } from './rebuilt-request.ts'
export { diffRuns, type RunsDiff, type RunSpending, type RunTail } from './diff-runs.ts'
export { watch } from './watch.ts'
export { watchLedger } from './watch-ledger.ts'
export type { Fault } from './link-check.ts'
export type { BrokenPlace, RunVerdict, StoreVerdict } from './verdict.ts'
export { verifyLedger, verifyRun } from './verify.ts'
export { toldDifferences, type Difference } from './difference.ts'
export { replayRun, type Divergence, type ReplayOptions, type ReplayReport } from './replay.ts'
export { exportRegression, type Regression, type RegressionOptions } from './regression.ts'
export {
  replayRegression,
  type ReplayRegressionOptions,
  type RegressionReport,
  type RegressionAgents,
  type RegressionContext,
  type RegressionSetup,
} from './replay-regression.ts'
export { explain } from './explain.ts'
export type { ExplainedAttempt, ExplainedItem, Explanation, ReplacedMessage } from './explanation.ts'
export type { Keyring, SubjectKey } from './content/keyring.ts'
export { redact, type RedactOptions } from './removal/redact.ts'
export {
  applyRetention,
  type RetentionAges,
  type RetentionOptions,
  type RetentionReport,
} from './removal/retention.ts'
export type { Removal, RemovalKind } from './removal/removal.ts'
export type { MissingContent } from './removal/missing-content.ts'
