// For authors of stores: what every ledger refuses, which facts it holds once, how a reader follows it, and the checks of options.
export {
  type SessionPlace,
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
  sessionPlaceOf,
  storableDigests,
  storableText,
  takesEntries,
  unreadInbox,
} from './memory-ledger/append-rules.ts'
export {
  requireAppend,
  requireEventQuery,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
} from './ports/read-options.ts'
export { OpenUses } from './ports/open-uses.ts'
export { unknownCursor } from './memory-ledger/unknown-cursor.ts'
export { ChangeHints } from './memory-ledger/change-hints.ts'
export {
  type ChangeOptions,
  type Changes,
  type Poll,
  caughtUp,
  changesOf,
  changesOfEveryRun,
} from './ports/changes-of.ts'
export * as option from './vocabulary/options/option.ts'
export type { OptionCheck, OptionChecks, OptionFault, OptionalCheck } from './vocabulary/options/option.ts'
export { requireOptions } from './vocabulary/options/require-options.ts'
export { digestTextsWith } from './vocabulary/digest-texts-with.ts'
export { isFrozenOnce } from './vocabulary/values/deep-freeze.ts'
export { omitUndefined } from './vocabulary/values/omit-undefined.ts'
export { closedByUsing, type OpenLedger } from './ports/open-ledger.ts'
