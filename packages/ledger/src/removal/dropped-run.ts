import { LedgerConflictError, type RunId } from '@tallystick/core'

/** What the rules of every store say of a run that comes again. */
const returnRule = 'a run that was dropped does not come back'

/** The refusal of a run whose id a dropped run had; `undefined` where something else was refused. */
export function droppedRunConflict(error: unknown, runId: RunId): LedgerConflictError | undefined {
  if (!(error instanceof Error) || !error.message.includes(returnRule)) return undefined
  return new LedgerConflictError(
    'unique',
    `Run ${runId} was dropped from this ledger, on record, and cannot come back: its removed content would be there again. ` +
      'Nothing was written. Import it into another ledger, or start another run.',
  )
}
