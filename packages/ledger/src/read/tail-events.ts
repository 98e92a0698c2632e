import type { RuntimeEvent } from '@tallystick/core'
import { unknownCursor } from '@tallystick/core/store-kit'
import { type TailCursor, type TailedEvent } from '@tallystick/core/vocabulary'
import { hexOf } from '../record/chain.ts'
import { outOfOrder } from '../record/event-row.ts'
import type { FoundRow } from './event-search.ts'
import { eventsOfRow } from './find-events.ts'

/** A place in the order of a tail: first by the transaction that wrote the event, then by `pos`. */
export interface TailPlace {
  /** A whole number below 2^64; 0 where the order of `pos` is that of commits. */
  readonly xid: string
  readonly pos: number
}

/** An event as a tail finds it. */
export interface TailRow extends FoundRow {
  readonly xid: string
}

/** Some events of a tail, in its order. */
export interface TailBatch {
  readonly rows: readonly TailRow[]
  /** Whether nothing comes after them that was settled when the tail began. */
  readonly isLast: boolean
}

/** The event after which a tail is to begin. */
export interface TailStart extends TailPlace {
  /** Empty before the first event of all. */
  readonly runId: string
  /** How many events of its row come after it. */
  readonly left: number
}

/** What a row says of the event that a cursor names. */
export interface RowAtCursor {
  readonly runId: string
  readonly hash: Uint8Array
  /** How many events the row holds. */
  readonly events: number
}

/** A tail at its beginning: where it begins is known, and where it ends. */
export interface BegunTail {
  /** The row of the event after which it begins; absent without one. */
  readonly rowAtCursor?: RowAtCursor | undefined
  /** Whether the run of that event was dropped, on record, and the event with it. */
  readonly isDropped: boolean
  /** The next batch after a place. */
  batch(after: TailPlace): Promise<TailBatch>
}

/** A store as a tail sees it. */
export interface TailedStore {
  /** Finds the event that is named, and settles how far the tail goes. */
  begin(after: TailStart): Promise<BegunTail>
  /** Throws where the ledger was closed meanwhile. */
  readonly requireOpen: () => void
}

/** The place before every event. */
const start: TailStart = { xid: '0', pos: 0, runId: '', left: 0 }

/**
 * The events of a store after a cursor, in the order of its tail. Each is checked against the event before it in its
 * run. Throws a `ConfigurationError` for a cursor that names no event of the store, and `LedgerDamagedError` at the
 * first event that is not as it was written. Yields nothing once the ledger was closed, whatever it holds. Holds one batch.
 */
export async function* tailEvents(store: TailedStore, after?: TailCursor): AsyncGenerator<TailedEvent> {
  const named = after === undefined ? undefined : parseCursor(after)
  const begun = await store.begin(named ?? start)
  if (after !== undefined && !isKnown(begun, named)) throw unknownCursor(after)
  const begin = named ?? start
  let place = placeBefore(begin)
  for (;;) {
    const { rows, isLast } = await begun.batch(place)
    for (const row of rows) {
      if (!isAfter(row, place)) throw outOfOrder('the events of its tail')
      place = { xid: row.xid, pos: row.pos }
      for (const event of eventsDue(row, begin)) {
        store.requireOpen()
        yield { cursor: cursorOf(row, row.seq - event.seq), event }
      }
    }
    if (isLast) return
  }
}

/** The events of a row; of the row of the cursor, those after the event that the cursor names. */
function eventsDue(row: TailRow, { xid, pos, left }: TailStart): readonly RuntimeEvent[] {
  const events = eventsOfRow(row)
  return left > 0 && row.xid === xid && row.pos === pos ? events.slice(-left) : events
}

/** The place after which the first row is read: before the row of the cursor, where events of it are left. */
export function placeBefore({ xid, pos, left }: TailStart): TailPlace {
  return { xid, pos: left > 0 ? pos - 1 : pos }
}

/** Places are given out once, so after one whose event was dropped everything is as it was. */
function isKnown({ rowAtCursor, isDropped }: BegunTail, named: NamedPlace | undefined): boolean {
  if (rowAtCursor === undefined) return isDropped
  return (
    rowAtCursor.runId === named?.runId &&
    digestOf(rowAtCursor.hash) === named.digest &&
    named.left < rowAtCursor.events
  )
}

/** An index that is out of order would have the same batch read for ever. */
function isAfter(row: TailPlace, before: TailPlace): boolean {
  return row.xid === before.xid ? row.pos > before.pos : BigInt(row.xid) > BigInt(before.xid)
}

/**
 * The place of a row, how many of its events come after the event if any do, its run, and the beginning of its hash. Where a store has gone back in time, as with a
 * copy that was restored, another event may be at the place, and what was written in front of it would be left out.
 */
function cursorOf({ xid, pos, hash, run_id }: TailRow, left: number): TailCursor {
  return `${xid}-${pos}${left > 0 ? `.${left}` : ''}-${digestOf(hash)}-${run_id}`
}

const cursorShape = /^(0|[1-9]\d{0,19})-([1-9]\d{0,15})(?:\.([1-9]\d{0,2}))?-([0-9a-f]{16})-(.*)$/s

interface NamedPlace extends TailStart {
  readonly digest: string
}

function parseCursor(cursor: TailCursor): NamedPlace {
  const [, xid = '', pos = '', left = '0', digest = '', runId = ''] = cursorShape.exec(cursor) ?? []
  const isSound = xid !== '' && BigInt(xid) < 2n ** 64n && Number.isSafeInteger(Number(pos))
  if (!isSound) throw unknownCursor(cursor)
  return { xid, pos: Number(pos), left: Number(left), digest, runId }
}

function digestOf(hash: Uint8Array): string {
  return hexOf(hash).slice(0, 16)
}
