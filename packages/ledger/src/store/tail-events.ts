import { createUnknownCursorError } from '@tallystick/core/store-kit'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { createOutOfOrderError } from '../format/event-row.ts'
import type { FoundRow } from './database.ts'
import { readFound } from './find-events.ts'
import type { RowReader } from './read-events.ts'
import type { Store } from './store.ts'

/** A place in the order of a tail: first by the transaction that wrote the event, then by `pos`. */
export interface TailPlace {
  /** A whole number below 2^64; 0 where the order of `pos` is that of commits. */
  readonly xid: string
  readonly pos: number
}

/** An event as a tail finds it. */
export type TailRow = FoundRow & Pick<TailPlace, 'xid'>

/** Some events of a tail, in its order. */
export interface TailBatch {
  readonly rows: readonly TailRow[]
  /** Nothing that was settled when the tail began comes after them. */
  readonly isLast: boolean
}

/** The event after which a tail is to begin. */
export interface TailStart extends TailPlace {
  /** Empty before the first event of all. */
  readonly runId: string
}

/** A tail at its beginning: its start and its end are known. */
export interface BegunTail {
  /** The event at the place of the cursor; absent without one. */
  readonly atCursor?: { readonly runId: string; readonly hash: string } | undefined
  /** The run of that event was dropped, on record, and the event with it. */
  readonly isDropped: boolean
  batch(after: TailPlace): Promise<TailBatch>
}

/**
 * The events of a store after a cursor, in the order of its tail, each checked against the event before it in its run.
 * Throws a `ConfigurationError` for a cursor that names no event of the store, `LedgerDamagedError` at the first event that
 * is not as it was written, and the error of a closed ledger. Holds one batch.
 */
export async function* tailEvents(
  store: Pick<Store, 'beginTail' | 'database'>,
  rows: RowReader,
  after?: TailCursor,
): AsyncGenerator<TailedEvent> {
  const named = after === undefined ? undefined : parseCursor(after)
  const begun = await store.beginTail(named ?? { xid: '0', pos: 0, runId: '' })
  if (after !== undefined && !isKnown(begun, named)) throw createUnknownCursorError(after)
  let place: TailPlace = named ?? { xid: '0', pos: 0 }
  for (;;) {
    const batch = await begun.batch(place)
    for (const row of await rows.readable(batch.rows)) {
      // An index that is out of order would have the same batch read for ever.
      if (!isAfter(row, place)) throw createOutOfOrderError('the events of its tail')
      place = { xid: row.xid, pos: row.pos }
      const event = readFound(row)
      store.database.requireOpen()
      yield { cursor: formatCursor(row), event }
    }
    if (batch.isLast) return
  }
}

/** Places are given out once, so after one whose event was dropped everything is as it was. */
function isKnown({ atCursor, isDropped }: BegunTail, named: NamedPlace | undefined): boolean {
  if (atCursor === undefined) return isDropped
  return atCursor.runId === named?.runId && atCursor.hash.slice(0, hashCharacters) === named.hash
}

function isAfter(row: TailPlace, before: TailPlace): boolean {
  return row.xid === before.xid ? row.pos > before.pos : BigInt(row.xid) > BigInt(before.xid)
}

const hashCharacters = 12

/**
 * The place of an event, the beginning of its hash, and its run. Where a store has gone back in time, as with a copy that
 * was restored, another event may be at the place, and what was written before it would be left out.
 */
function formatCursor({ xid, pos, hash, run_id }: TailRow): TailCursor {
  return `${xid}-${pos}-${hash.slice(0, hashCharacters)}-${run_id}`
}

const cursorShape = /^(0|[1-9]\d{0,19})-([1-9]\d{0,15})-([\w-]{12})-(.*)$/s

interface NamedPlace extends TailStart {
  readonly hash: string
}

function parseCursor(cursor: TailCursor): NamedPlace {
  const [, xid = '', pos = '', hash = '', runId = ''] = cursorShape.exec(cursor) ?? []
  const isSound = xid !== '' && BigInt(xid) < 2n ** 64n && Number.isSafeInteger(Number(pos))
  if (!isSound) throw createUnknownCursorError(cursor)
  return { xid, pos: Number(pos), hash, runId }
}
