import { ConfigurationError } from '../vocabulary/errors.ts'
import type { TailCursor } from '../ports/ledger.ts'

const shownMax = 120

/** The refusal of a cursor that names no event of the ledger that is asked to go on behind it. */
export function unknownCursor(cursor: TailCursor): ConfigurationError {
  const shown = cursor.length > shownMax ? `${cursor.slice(0, shownMax)}…` : cursor
  return new ConfigurationError(
    `The cursor ${JSON.stringify(shown)} names no event of this ledger, so what comes behind it is not known, and going on ` +
      'from anywhere else would leave events out. It is of another ledger, or of events that were lost when a disk failed or ' +
      'an older copy was restored. Give a cursor that this ledger gave out, or none, and begin with the first event.',
  )
}
