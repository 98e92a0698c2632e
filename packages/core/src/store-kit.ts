// For authors of stores: what every ledger refuses, which facts it holds once, and how a reader follows it.
export {
  createDrivenByOtherError,
  emptyHead,
  createEndedError,
  endsRun,
  isStorableName,
  deriveOnceKey,
  createPlaceTakenError,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  createSecondFactError,
  type SessionPlace,
  readSessionPlace,
  computeStorableDigests,
  toStorableText,
  hintsInbox,
  createUnknownCursorError,
  createUnreadInboxError,
} from './ledger/append-rules.ts'
export {
  caughtUp,
  ChangeHints,
  type ChangeOptions,
  type Changes,
  followChanges,
  followAllChanges,
  OpenUses,
  type Poll,
} from './ledger/changes.ts'
export { closeByUsing, type OpenLedger } from './ledger/ledger.ts'
export {
  requireAppend,
  requireEventQuery,
  refuseTransaction,
  requirePut,
  requireRead,
  requireDueFilter,
  requireRunFilter,
  requireTextId,
  toDueAt,
  toWholeTime,
} from './ledger/queries.ts'
export { digestTextsWith } from './values/digest.ts'
