// For authors of stores: what every ledger refuses, and which facts it holds once.
export {
  type SessionPlace,
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
export { unknownCursor } from './memory-ledger/unknown-cursor.ts'
export { ChangeHints } from './memory-ledger/change-hints.ts'
