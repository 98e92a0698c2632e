import { everyEvent, type FoundBatch } from '../read/event-search.ts'
import type { BegunTail, TailedStore } from '../read/tail-events.ts'
import type { SqliteSearch } from './rows/search.ts'
import type { StoreAccess } from './store-access.ts'

/**
 * One writer at a time holds the file, so the order of `pos` is that of commits, and committed events do not change.
 */
const xid = '0'

/** A file as its tail sees it. */
export function sqliteTail(access: StoreAccess): TailedStore {
  return {
    requireOpen: () => access.requireOpen(),
    begin: (after) =>
      access.read(({ search }): BegunTail => {
        const toPos = search.places(everyEvent)?.toPos ?? 0
        return {
          rowAtCursor: after.xid === xid ? search.rowAt(after.pos) : undefined,
          isDropped: after.xid === xid && search.isDropped(after.runId),
          async batch({ pos }) {
            const { rows, next } = await access.read((store) => batchAfter(store.search, pos, toPos))
            const opened = await access.withDecoding(rows)
            return { rows: opened.map((row) => ({ ...row, xid })), isLast: next === undefined }
          },
        }
      }),
  }
}

/** The next batch that holds anything; an empty one after the last. */
function batchAfter(search: SqliteSearch, fromPos: number, toPos: number): FoundBatch {
  const source = { by: 'place', fromPos, toPos } as const
  let batch = search.batch(everyEvent, source, { pos: fromPos, seq: 0 })
  while (batch.rows.length === 0 && batch.next) batch = search.batch(everyEvent, source, batch.next)
  return batch
}
