import { ConfigurationError, type Ledger, type RunId, RunNotFoundError } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import { getDatabase } from '../store/store.ts'
import type { RecordRow } from './record-check.ts'
import { readAuditedRows } from './store-audit.ts'

/** Which rows to read. */
export interface RecordRange {
  /** The number of the event before the first one. Default: 0. */
  readonly after?: number | undefined
  /** At most this many rows. Default: 500. */
  readonly limit?: number | undefined
}

const recordRange = option.fields<RecordRange>({
  after: option.maybe(option.numberFrom(0, { whole: true })),
  limit: option.maybe(option.numberFrom(1, { whole: true })),
})

/**
 * Returns rows of a run as the store has them, unchecked, for a `RecordCheck` elsewhere: at most `limit` rows, fewer if they are large,
 * none after the last one. Rejects with `RunNotFoundError` for an unknown run, and with `ConfigurationError` for a ledger that keeps
 * no chain of hashes.
 */
export async function readRecord(
  ledger: Ledger,
  runId: RunId,
  range: RecordRange = {},
): Promise<readonly RecordRow[]> {
  requireLedger('readRecord', ledger)
  requireTextId('readRecord', runId)
  requireOptions('readRecord', recordRange, range)
  const { after = 0, limit = 500 } = range
  if ((await ledger.head(runId)) === undefined) throw new RunNotFoundError(runId)
  const database = getDatabase(ledger)
  if (database === undefined) {
    throw new ConfigurationError(
      'This ledger keeps no chain of hashes, so it has no rows to check. Use a ledger of @tallystick/ledger.',
    )
  }
  const rows = await readAuditedRows(database, { runId, fromSeq: after + 1, toSeq: after + limit })
  return rows.map(({ pos: _place, ...row }) => row)
}
