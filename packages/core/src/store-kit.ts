// For authors of stores: what every ledger refuses, which facts it holds once, and how a reader follows it.
export {
  drivenByOther,
  emptyHead,
  endedBefore,
  endsRun,
  isStorableName,
  deriveOnceKey,
  placeTaken,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  secondFact,
  type SessionPlace,
  readSessionPlace,
  storableDigests,
  storableText,
  takesEntries,
  unknownCursor,
  unreadInbox,
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
export { closedByUsing, type OpenLedger } from './ledger/ledger.ts'
export {
  requireAppend,
  requireEventQuery,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
} from './ledger/queries.ts'
export { digestTextsWith } from './values/digest.ts'
