import type { RunId } from '@tallystick/core'
import type { EventRange } from '../read/checked-events.ts'
import { storedRow } from '../record/event-row.ts'
import type { RemovableStore } from '../removal/removable-store.ts'
import type { StoredRemoval } from '../record/removal.ts'
import type { StoredRow } from '../record/stored-row.ts'
import { eventRange } from './rows/event-batch.ts'
import type { PostgresStore } from './postgres-store.ts'
import type { StoreAccess } from './store-access.ts'

/** Lets payloads of a ledger be taken away. `changed` gets each run that lost any. */
export function postgresRemovable(access: StoreAccess, changed: (runId: RunId) => void): RemovableStore {
  return {
    payloads: (query) =>
      access.read(async (store) => {
        const { items, next } = await store.removals.payloads(query)
        const events = (await store.withDecoding(items)).map(storedRow)
        return { items: events, ...(next !== undefined && { next }) }
      }),
    events: (runId, fromSeq, toSeq) => access.read((store) => eventsOf(store, { runId, fromSeq, toSeq })),
    endedRuns: (query) => access.read(({ removals }) => removals.endedRuns(query)),
    async remove(removals) {
      const removed = await access.write((store) => store.removals.remove(removals))
      for (const runId of new Set(removals.map((removal) => removal.runId))) changed(runId)
      return removed
    },
    removals: (runId) => access.iterate((store) => everyRemoval(store, runId)),
  }
}

async function eventsOf(store: PostgresStore, range: EventRange): Promise<readonly StoredRow[]> {
  const events: StoredRow[] = []
  for await (const stored of eventRange(store, range)) events.push(stored)
  return events
}

/** Removals in order, those of one run where it is named. */
export async function* everyRemoval(
  { removals }: PostgresStore,
  runId?: RunId,
): AsyncGenerator<StoredRemoval> {
  for (let afterPos = 0; ;) {
    const batch = await removals.batch(afterPos, runId)
    yield* batch
    const last = batch.at(-1)
    if (last === undefined) return
    afterPos = last.pos
  }
}
