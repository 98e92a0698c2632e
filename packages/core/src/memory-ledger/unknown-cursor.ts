import { ConfigurationError } from '../vocabulary/errors.ts'
import { anyText } from '../vocabulary/options/option.ts'
import { requireOptions } from '../vocabulary/options/require-options.ts'
import type { TailCursor } from '../ports/ledger.ts'

const maxShown = 120

/** The refusal of a cursor that names no event of the ledger that a tail was to continue after. */
export function unknownCursor(cursor: TailCursor): ConfigurationError {
  if (typeof cursor !== 'string') requireOptions('ledger.tail', anyText, cursor, 'the cursor')
  const shown = cursor.length > maxShown ? `${cursor.slice(0, maxShown)}…` : cursor
  return new ConfigurationError(
    `The cursor ${JSON.stringify(shown)} names no event of this ledger, so the events after it are not known, and continuing ` +
      'from another place would leave events out. It is of another ledger, or of events that were lost when a disk failed or ' +
      'an older copy was restored. Pass a cursor that this ledger returned, or none, and begin with the first event.',
  )
}
