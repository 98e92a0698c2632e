import { RunNotFoundError } from '@tallystick/core'
import { isStorableName, requireRunFilter } from '@tallystick/core/store-kit'
import { type RunFilter, type RunRecord } from '@tallystick/core/vocabulary'
import type { Selectable } from 'kysely'
import { outOfOrder } from '../../record/event-row.ts'
import { recordOf } from '../../record/run-record.ts'
import { RunIdSieve } from '../../record/stored-ids.ts'
import type { ReadQueries } from './queries.ts'
import { runRow, soundRow } from './run-row.ts'
import type { RunTable } from '../../record/tables.ts'

/** How many rows of runs are read at once. */
const runsPerBatch = 256

/**
 * The runs of the port, batch after batch. Between batches the store may be written. Rows whose ids are no run ids are left
 * out, and named by a `BadRunIdsError` at the end of the list.
 */
export function* listRuns(reads: ReadQueries, filter: RunFilter = {}): Generator<RunRecord> {
  requireRunFilter(filter)
  let { limit: left = Infinity } = filter
  if (!isStorableName(filter.sessionId ?? '')) return
  let before = startOf(reads, filter)
  const sieve = new RunIdSieve()
  while (left > 0) {
    const asked = Math.min(runsPerBatch, Math.ceil(left))
    const batch = batchBefore(reads, before, asked, filter.sessionId)
    for (const row of batch.map(soundRow)) {
      const place = placeOf(row, filter)
      // An index that is out of order would have the same batch listed for ever.
      if (place === undefined || place >= before) throw outOfOrder('its runs')
      before = place
      if (!sieve.keeps(row.run_id)) continue
      left -= 1
      yield recordOf(row)
    }
    if (batch.length < asked) return sieve.end()
  }
}

/** The place in its list after which a batch begins: that of a run. */
function startOf(reads: ReadQueries, filter: RunFilter): number {
  if (filter.before === undefined) return Number.MAX_SAFE_INTEGER
  const row = runRow(reads, filter.before)
  const place = row && placeOf(row, filter)
  if (place === undefined) throw new RunNotFoundError(filter.before)
  return place
}

function batchBefore(
  reads: ReadQueries,
  before: number,
  limit: number,
  sessionId?: string,
): readonly Selectable<RunTable>[] {
  return sessionId === undefined
    ? reads.runs.all({ beforePos: before, limit })
    : reads.sessionRuns.all({ sessionId, beforePlace: before, limit })
}

/** Returns the sort key of a run in a list; `undefined` if the run is not in the list. */
function placeOf(row: Selectable<RunTable>, { sessionId }: RunFilter): number | undefined {
  if (sessionId === undefined) return row.pos
  return row.session_id === sessionId ? (row.session_place ?? undefined) : undefined
}
