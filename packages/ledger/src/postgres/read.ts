import type { RunId, RuntimeEvent, Ledger } from '@tallystick/core'
import { requireRead } from '@tallystick/core/store-kit'
import {
  checkedEvents,
  missingEvent,
  presentRange,
  type BegunRead,
  type EventRange,
} from '../read/checked-events.ts'
import { genesis } from '../record/link-check.ts'
import type { StoredRow } from '../record/stored-row.ts'
import { eventBatch, rangeAfter } from './rows/event-batch.ts'
import type { PostgresStore } from './postgres-store.ts'
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

/**
 * Events of a range, batch after batch. While a batch is used the next one is on its way; between them no connection is
 * held.
 */
export async function* eventBatches(
  access: StoreAccess,
  range: EventRange,
): AsyncGenerator<readonly StoredRow[]> {
  const ask = (asked: EventRange): Promise<readonly StoredRow[]> =>
    access.read((store) => eventBatch(store, asked))
  let coming: Promise<readonly StoredRow[]> | undefined = ask(range)
  while (coming) {
    const batch: readonly StoredRow[] = await coming
    const left = rangeAfter(batch, range)
    coming = left && ask(left)
    // A reader of the batch gets the error; there may be no reader.
    coming?.catch(() => undefined)
    yield batch
  }
}

async function begun(
  store: PostgresStore,
  runId: RunId,
  range: Parameters<Ledger['read']>[1],
): Promise<BegunRead> {
  const present = presentRange(runId, (await store.head(runId))?.seq ?? 0, range)
  const { fromSeq, toSeq } = present
  if (fromSeq === 1 || fromSeq > toSeq) return { present, before: genesis }
  const rowWith = async (seq: number): Promise<StoredRow> => {
    const [row] = await eventBatch(store, { runId, fromSeq: seq, toSeq: seq })
    if (row === undefined) throw missingEvent(runId, seq)
    return row
  }
  const { firstSeq, seq } = await rowWith(fromSeq)
  const before = (firstSeq ?? seq) - 1
  return { present, before: before === 0 ? genesis : await rowWith(before) }
}
