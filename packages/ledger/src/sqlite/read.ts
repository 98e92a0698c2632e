import type { RunId, RuntimeEvent, Ledger } from '@tallystick/core'
import { requireRead } from '@tallystick/core/store-kit'
import {
  checkedEvents,
  missingEvent,
  presentRange,
  type BegunRead,
  type EventRange,
} from '../read/checked-events.ts'
import { storedRow, type EventRow } from '../record/event-row.ts'
import { genesis } from '../record/link-check.ts'
import type { StoredRow } from '../record/stored-row.ts'
import { eventBatch } from './rows/event-batch.ts'
import type { SqliteStore } from './sqlite-store.ts'
import type { StoreAccess } from './store-access.ts'

/**
 * Events of a run as they were written, up to where it ends when the first is asked for. Each is checked against the
 * chain before it is handed out. Throws `LedgerDamagedError` at the first that has changed, or that is missing.
 */
export function readEvents(
  access: StoreAccess,
  runId: RunId,
  range?: Parameters<Ledger['read']>[1],
): AsyncGenerator<RuntimeEvent> {
  // No generator around the other one: it would cost each event three more turns of the queue.
  return checkedEvents({
    async begin() {
      requireRead(runId, range)
      return access.read((store) => begun(store, runId, range))
    },
    batches: (present) => eventBatches(access, present),
    requireOpen: () => access.requireOpen(),
  })
}

/** Events of a range, batch after batch, each with what it needs to be read. Between batches the store may be written. */
export async function* eventBatches(
  access: StoreAccess,
  range: EventRange,
): AsyncGenerator<readonly StoredRow[]> {
  let { fromSeq } = range
  while (fromSeq <= range.toSeq) {
    const asked = { ...range, fromSeq }
    const batch = await access.withDecoding(await access.read((store) => eventBatch(store.reads, asked)))
    yield batch.map(storedRow)
    const last = batch.at(-1)
    if (last === undefined) return
    fromSeq = last.seq + 1
  }
}

function begun(store: SqliteStore, runId: RunId, range: Parameters<Ledger['read']>[1]): BegunRead {
  const present = presentRange(runId, store.head(runId)?.seq ?? 0, range)
  const { fromSeq, toSeq } = present
  if (fromSeq === 1 || fromSeq > toSeq) return { present, before: genesis }
  const rowWith = (seq: number): EventRow => {
    const [row] = eventBatch(store.reads, { runId, fromSeq: seq, toSeq: seq })
    if (row === undefined) throw missingEvent(runId, seq)
    return row
  }
  const { first_seq, seq } = rowWith(fromSeq)
  const before = (first_seq ?? seq) - 1
  return { present, before: before === 0 ? genesis : storedRow(rowWith(before)) }
}
