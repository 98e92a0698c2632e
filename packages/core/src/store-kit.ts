// For authors of stores: what every ledger refuses, which facts it holds once, and how a reader follows it.
export {
  computeStorableDigests,
  createDrivenByOtherError,
  createEndedError,
  createPlaceTakenError,
  createSecondFactError,
  createUnknownCursorError,
  createUnreadInboxError,
  deriveOnceKey,
  emptyHead,
  endsRun,
  hintsInbox,
  isStorableName,
  readSessionPlace,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  type SessionPlace,
  toStorableText,
} from './ledger/append-rules.ts'
export {
  caughtUp,
  ChangeHints,
  type ChangeOptions,
  type Changes,
  followAllChanges,
  followChanges,
  OpenUses,
  type Poll,
} from './ledger/changes.ts'
export { closeByUsing, type OpenLedger } from './ledger/ledger.ts'
export {
  requireDueFilter,
  requireEventQuery,
  refuseTransaction,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
  toDueAt,
  toWholeTime,
} from './ledger/queries.ts'
export { redactEvent } from './ledger/redacted-event.ts'
export { digestTextsWith } from './values/digest.ts'
