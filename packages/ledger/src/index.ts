export { verifierKeyOf } from './checkpoint/signed-note.ts'
export { writeCheckpoint, type Checkpoint, type CheckpointOptions } from './checkpoint/checkpoint.ts'
export {
  verifyCheckpoints,
  type CheckpointFault,
  type CheckpointsVerdict,
  type VerifyCheckpointsOptions,
} from './checkpoint/verify-checkpoints.ts'
export { exportedLine, exportEvents } from './transfer/export-events.ts'
export { ExportedHistories } from './transfer/shared-history.ts'
export {
  importEvents,
  type ImportOptions,
  type ImportReport,
  type ImportedRun,
} from './transfer/import-events.ts'
export { linesOf } from './transfer/lines-of.ts'
export type { FoldedRun } from './projection/snapshot/bound-state.ts'
export { eventsToFold, foldTo, outlineTo, type FoldOptions } from './projection/snapshot/fold-to.ts'
export {
  maxOutlinedValues,
  type CallEnding,
  type InputOutline,
  type OpenRequest,
  type RunOutline,
  type ToolOutline,
} from './projection/snapshot/run-outline.ts'
export type {
  ListedRun,
  NamedCall,
  RunSummary,
  RunWaits,
  RunStatus,
  UnreadableRun,
} from './projection/summary/run-summary.ts'
export { firstInputs } from './projection/summary/first-inputs.ts'
export type { CallCount } from './projection/summary/call-counts.ts'
export { fitsFilter, runSummaries, runSummary, type SummaryFilter } from './projection/stats/run-summaries.ts'
export { ledgerStats } from './projection/stats/ledger-stats.ts'
export type { DaySpending, LedgerStats, SessionTotals, StatsQuery } from './projection/stats/stats.ts'
export { projectionLag, type ProjectionOptions } from './projection/refresh/projection-lag.ts'
export { rebuildProjections, type RebuildReport } from './projection/refresh/rebuild-projections.ts'
export { rebuiltRequest, type RebuiltRequest } from './store/rebuilt-request.ts'
export { watch } from './store/watch.ts'
export { watchLedger } from './store/watch-ledger.ts'
export type { Fault } from './format/event-row.ts'
export type { BrokenPlace, RunVerdict, StoreVerdict } from './verify/verdict.ts'
export { verifyLedger, verifyRun } from './verify/verify.ts'
export type { Keyring, SubjectKey } from './format/keyring.ts'
export { redact, type RedactOptions } from './store/redact.ts'
export {
  applyRetention,
  type RetentionAges,
  type RetentionOptions,
  type RetentionReport,
} from './store/redact.ts'
export type { Removal, RemovalKind } from './format/removal.ts'
export type { MissingContent } from './store/redact.ts'
