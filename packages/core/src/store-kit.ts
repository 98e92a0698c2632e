// For authors of stores: what every ledger refuses, which facts it holds once, how a reader follows it, and the checks of options.
export {
  drivenByOther,
  emptyHead,
  endedBefore,
  endsRun,
  isStorableName,
  onceKeyOf,
  placeTaken,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  secondFact,
  type SessionPlace,
  sessionPlaceOf,
  storableDigests,
  storableText,
  takesEntries,
  unknownCursor,
  unreadInbox,
} from './ledger/append-rules.ts'
export {
  requireAppend,
  requireEventQuery,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
} from './ledger/queries.ts'
export {
  caughtUp,
  ChangeHints,
  type ChangeOptions,
  type Changes,
  changesOf,
  changesOfEveryRun,
  OpenUses,
  type Poll,
} from './ledger/changes.ts'
export * as option from './values/option.ts'
export {
  type OptionalCheck,
  type OptionCheck,
  type OptionChecks,
  type OptionFault,
  requireOptions,
} from './values/option.ts'
export { digestTextsWith } from './values/digest.ts'
export { isFrozenOnce, omitUndefined } from './values/json.ts'
export { closedByUsing, type OpenLedger } from './ledger/ledger.ts'
