import type { RunId, RuntimeEvent } from '@tallystick/core'
import {
  checkedEvents,
  missingEvent,
  presentRange,
  type BegunRead,
  type EventRange,
} from '../read/checked-event.ts'
import { genesis } from '../record/link-check.ts'
import type { StoredEvent } from '../record/stored-event.ts'
import { eventBatch, rangeAfter } from './rows/event-batch.ts'
import type { PostgresStore } from './postgres-store.ts'
import type { StoreAccess } from './store-access.ts'

/**
 * Events of a run as they were written, up to where it ends when the first is asked for. Each is checked against the
 * chain before it is handed out. Throws `LedgerDamagedError` at the first that has changed, or that is missing.
 */
export async function* readEvents(
  access: StoreAccess,
  runId: RunId,
  range?: { readonly fromSeq?: number; readonly toSeq?: number },
): AsyncGenerator<RuntimeEvent> {
  const begunRead = await access.read((store) => begun(store, runId, range))
  yield* checkedEvents(
    begunRead,
    (present) => eventBatches(access, present),
    () => access.requireOpen(),
  )
}

/** Yields the stored events of a range, unchecked. */
export async function* storedEvents(access: StoreAccess, range: EventRange): AsyncGenerator<StoredEvent> {
  for await (const batch of eventBatches(access, range)) {
    for (const stored of batch) {
      access.requireOpen()
      yield stored
    }
  }
}

/**
 * Events of a range, batch after batch. While a batch is used the next one is on its way; between them no connection is
 * held.
 */
async function* eventBatches(access: StoreAccess, range: EventRange): AsyncGenerator<readonly StoredEvent[]> {
  const ask = (asked: EventRange): Promise<readonly StoredEvent[]> =>
    access.read((store) => eventBatch(store, asked))
  let coming: Promise<readonly StoredEvent[]> | undefined = ask(range)
  while (coming) {
    const batch: readonly StoredEvent[] = await coming
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
  range: { readonly fromSeq?: number; readonly toSeq?: number } | undefined,
): Promise<BegunRead> {
  const present = presentRange(runId, (await store.head(runId))?.seq ?? 0, range)
  const { fromSeq, toSeq } = present
  if (fromSeq === 1 || fromSeq > toSeq) return { present, before: genesis }
  const [before] = await eventBatch(store, { runId, fromSeq: fromSeq - 1, toSeq: fromSeq - 1 })
  if (before === undefined) throw missingEvent(runId, fromSeq - 1)
  return { present, before }
}
