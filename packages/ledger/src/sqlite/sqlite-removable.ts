import type { RunId } from '@tallystick/core'
import { storedRow, type EventRow } from '../record/event-row.ts'
import type { RemovableStore } from '../removal/removable-store.ts'
import type { Removal, StoredRemoval } from '../record/removal.ts'
import type { StoredRow } from '../record/stored-row.ts'
import { eventRows } from './rows/event-batch.ts'
import type { SqliteStore } from './sqlite-store.ts'
import type { StoreAccess } from './store-access.ts'

/** Lets payloads of an open ledger file be taken away. `changed` gets each run that lost any. */
export function sqliteRemovable(access: StoreAccess, changed: (runId: RunId) => void): RemovableStore {
  const opened = async (work: (store: SqliteStore) => readonly EventRow[]): Promise<readonly StoredRow[]> =>
    (await access.withDecoding(await access.read(work))).map(storedRow)
  return {
    async payloads(query) {
      const { items, next } = await access.read(({ removals }) => removals.payloads(query))
      const events = (await access.withDecoding(items)).map(storedRow)
      return { items: events, ...(next !== undefined && { next }) }
    },
    events: (runId, fromSeq, toSeq) =>
      opened(({ reads }) => [...eventRows(reads, { runId, fromSeq, toSeq })]),
    endedRuns: (query) => access.read(({ removals }) => removals.endedRuns(query)),
    async remove(removals) {
      const removed = await access.write((store) => removeNow(store, removals))
      for (const runId of new Set(removals.map((removal) => removal.runId))) changed(runId)
      return removed
    },
    removals: (runId) => everyRemoval(access, runId),
  }
}

function removeNow(
  { transactions, removals: store, known }: SqliteStore,
  removals: readonly Removal[],
): number {
  const removed = transactions.transact('barrier', () => {
    // First: a commit that cannot be acknowledged has removed what was to go.
    known.forgetAll()
    return store.remove(removals)
  })
  store.settle()
  return removed
}

/** Removals in order, those of one run where it is named. */
export async function* everyRemoval(access: StoreAccess, runId?: RunId): AsyncGenerator<StoredRemoval> {
  for (let afterPos = 0; ;) {
    const from = afterPos
    const batch = await access.read(({ removals }) => removals.batch(from, runId))
    yield* batch
    const last = batch.at(-1)
    if (last === undefined) return
    afterPos = last.pos
  }
}
