import { everyEvent, type FoundPage } from '../read/event-search.ts'
import type { BegunTail, TailedStore } from '../read/tail-events.ts'
import type { SqliteSearch } from './rows/search.ts'
import type { StoreAccess } from './store-access.ts'

/** One writer at a time holds the file, so the order of `pos` is that of commits, and what stands is settled. */
const xid = '0'

/** A file as its tail sees it. */
export function sqliteTail(access: StoreAccess): TailedStore {
  return {
    begin: (after) =>
      access.read(({ search }): BegunTail => {
        const toPos = search.places(everyEvent)?.toPos ?? 0
        return {
          standing: after.xid === xid ? search.eventAt(after.pos) : undefined,
          isDropped: after.xid === xid && search.isDropped(after.runId),
          async page({ pos }) {
            const { rows, next } = await access.read((store) => pageBehind(store.search, pos, toPos))
            const opened = await access.opened(rows)
            return { rows: opened.map((row) => ({ ...row, xid })), isLast: next === undefined }
          },
        }
      }),
  }
}

/** The next page that holds anything; an empty one behind the last. */
function pageBehind(search: SqliteSearch, fromPos: number, toPos: number): FoundPage {
  const strand = { by: 'place', fromPos, toPos } as const
  let page = search.page(everyEvent, strand, { pos: fromPos, seq: 0 })
  while (page.rows.length === 0 && page.next) page = search.page(everyEvent, strand, page.next)
  return page
}
