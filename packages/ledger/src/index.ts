export { formatVerifierKey } from './checkpoint/signed-note.ts'
export { writeCheckpoint, type Checkpoint, type CheckpointOptions } from './checkpoint/checkpoint.ts'
export {
  verifyCheckpoints,
  type CheckpointFault,
  type CheckpointsVerdict,
  type VerifyCheckpointsOptions,
} from './checkpoint/checkpoint.ts'
export { toExportLine, exportEvents } from './export-events.ts'
export { ExportedHistories } from './export-events.ts'
export { importEvents, type ImportOptions, type ImportReport, type ImportedRun } from './import-events.ts'
export { splitLines } from './export-events.ts'
export {
  countEventsToFold,
  type FoldedRun,
  foldTo,
  readOutline,
  type FoldOptions,
} from './projection/fold-to.ts'
export {
  maxOutlinedValues,
  type CallEnding,
  type InputOutline,
  type OpenRequest,
  type RunOutline,
  type ToolOutline,
} from './projection/run-outline.ts'
export type {
  ListedRun,
  NamedCall,
  FeedbackFilter,
  RunSummary,
  RunWaits,
  RunStatus,
  UnreadableRun,
} from './projection/run-summary.ts'
export { findWorst, type WorstEnding } from './projection/run-summary.ts'
export { readBeginnings, readFirstInputs, type RunBeginning } from './projection/ended-runs.ts'
export type { CallCount, FeedbackSummary } from './projection/run-accumulator.ts'
export {
  fitsFilter,
  readRunSummaries,
  readRunSummary,
  type SummaryFilter,
} from './projection/run-summaries.ts'
export { readLedgerStats } from './projection/stats.ts'
export {
  readRunStats,
  type RunFacts,
  type RunStatsBucket,
  type RunStatsQuery,
} from './projection/run-stats.ts'
export type { DaySpending, LedgerStats, SessionTotals, StatsQuery } from './projection/stats.ts'
export { countProjectionLag, keepsProjections, type ProjectionOptions } from './projection/projections.ts'
export { rebuildProjections, type RebuildReport } from './projection/projections.ts'
export { rebuildRequest, type RebuiltRequest } from './projection/fold-to.ts'
export { listLeases, type HeldLease } from './store/leases.ts'
export {
  type CallQuery,
  type EventSearch,
  formatContent,
  type FoundEvent,
  type InputQuery,
  searchEvents,
} from './store/search.ts'
export { watch } from './store/watch.ts'
export { watchLedger } from './store/watch.ts'
export type { Fault } from './format/event-row.ts'
export type { BrokenPlace, RunVerdict, StoreVerdict } from './verify/verify.ts'
export { verifyLedger, verifyRun } from './verify/verify.ts'
export type { Keyring, SubjectKey } from './format/keyring.ts'
export { redact, type RedactOptions } from './store/redact.ts'
export {
  applyRetention,
  type RetentionAges,
  type RetentionOptions,
  type RetentionReport,
} from './store/redact.ts'
export type { Removal, RemovalKind } from './format/chain.ts'
export type { MissingContent } from './store/redact.ts'
export { readRecord, type RecordRange } from './verify/read-record.ts'
export type { RecordRow } from './verify/record-check.ts'
