import type { RuntimeEvent } from '@tallystick/core'
import { requireEventQuery } from '@tallystick/core/store-kit'
import type { EventQuery, EventType } from '@tallystick/core/vocabulary'
import type { WantedType } from '../content/event/segments.ts'
import { eventsAfter, missingEvent } from './checked-events.ts'
import { outOfOrder, storedRow } from '../record/event-row.ts'
import {
  askedEvents,
  isAsked,
  sourcesOf,
  type AskedEvents,
  type Cursor,
  type FoundBatch,
  type FoundRow,
  type SearchedStore,
  type SearchSource,
} from './event-search.ts'
import { genesis, type Link } from '../record/link-check.ts'

/**
 * Events of a store in the order of their places. Each is checked against the event before it in its run, so that
 * nothing is ever built on bytes that have changed. Throws `LedgerDamagedError` at the first that has, and the error of
 * a closed ledger where it was closed meanwhile, whatever was read ahead.
 *
 * Holds a batch of each run that is under way at the place where the search is, and no more.
 */
export async function* findEvents(
  store: SearchedStore,
  query: EventQuery = {},
): AsyncGenerator<RuntimeEvent> {
  requireEventQuery(query)
  const asked = askedEvents(query)
  // A store that is closed refuses this query as any other.
  if (asked === undefined) return void (await store.places({ ...nothingAsked }))
  const isWanted = wantedTypes(asked.types)
  const waiting = [...(await sourcesOf(store, asked))].toReversed()
  const open: SourceReader[] = []
  for (;;) {
    const first = firstOf(open)
    const next = waiting.at(-1)
    if (next && (first === undefined || startOf(next) <= first.head.pos)) {
      waiting.pop()
      const opened = await SourceReader.open(store, asked, next)
      if (opened) open.push(opened)
      continue
    }
    if (first === undefined) return
    for (const event of eventsOfRow(first.head, isWanted)) {
      if (!isAsked(asked, event)) continue
      store.requireOpen()
      yield event
    }
    if (!(await first.advance())) open.splice(open.indexOf(first), 1)
  }
}

const nothingAsked: AskedEvents = { turn: null, toolCallId: null, types: null, fromAt: 0, toAt: -1 }

function firstOf(open: readonly SourceReader[]): SourceReader | undefined {
  let first: SourceReader | undefined
  for (const source of open) if (first === undefined || source.head.pos < first.head.pos) first = source
  return first
}

function startOf(source: SearchSource): number {
  return source.by === 'place' ? source.fromPos : source.run.pos
}

/** The batches of a source, one after the other. */
class SourceReader {
  readonly #turnTo: (after: Cursor) => Promise<FoundBatch>
  #batch: FoundBatch
  #index = 0
  /** The event that it is at. */
  head: FoundRow

  private constructor(turnTo: (after: Cursor) => Promise<FoundBatch>, batch: FoundBatch, head: FoundRow) {
    this.#turnTo = turnTo
    this.#batch = batch
    this.head = head
  }

  /** `undefined` where the source has no event at all. */
  static async open(
    store: SearchedStore,
    asked: AskedEvents,
    source: SearchSource,
  ): Promise<SourceReader | undefined> {
    const turnTo = (after: Cursor): Promise<FoundBatch> => nextBatch(store, asked, source, after)
    const batch = await turnTo({ pos: startOf(source) - 1, seq: 0 })
    const [head] = batch.rows
    return head && new SourceReader(turnTo, batch, head)
  }

  /** Goes to the next event; whether there is one. */
  async advance(): Promise<boolean> {
    this.#index++
    if (this.#index >= this.#batch.rows.length && this.#batch.next) {
      this.#batch = await this.#turnTo(this.#batch.next)
      this.#index = 0
    }
    const head = this.#batch.rows[this.#index]
    if (head) this.head = head
    return head !== undefined
  }
}

/** The next batch that holds anything; an empty one after the last. */
async function nextBatch(
  store: SearchedStore,
  asked: AskedEvents,
  source: SearchSource,
  after: Cursor,
): Promise<FoundBatch> {
  let cursor = after
  for (;;) {
    const batch = await store.batch(asked, source, cursor)
    requireOrder(batch, source, cursor)
    if (batch.rows.length > 0 || batch.next === undefined) return batch
    cursor = batch.next
  }
}

/** An index that is out of order would have the same batch read for ever. */
function requireOrder({ rows }: FoundBatch, source: SearchSource, after: Cursor): void {
  let last = after
  for (const row of rows) {
    const isAfter = row.pos > last.pos && (source.by === 'place' || row.seq > last.seq)
    if (!isAfter) throw outOfOrder(source.by === 'place' ? 'its events' : `the events of run ${row.run_id}`)
    last = row
  }
}

/** Of `null`, which stands for all types, `undefined`. */
export function wantedTypes(types: readonly EventType[] | null): WantedType | undefined {
  return types ? (type) => types.includes(type) : undefined
}

/**
 * The events of a row, checked against the link before it; those of other types than are wanted may be left out. Throws
 * `LedgerDamagedError` where they are not as they were written.
 */
export function eventsOfRow(row: FoundRow, isWanted?: WantedType): readonly RuntimeEvent[] {
  const events = eventsAfter(linkBefore(row), storedRow(row), isWanted)
  if (events === undefined) throw missingEvent(row.run_id, row.seq)
  return events
}

function linkBefore(row: FoundRow): Link {
  const { previous_pos: pos, previous_epoch: epoch, previous_hash: hash } = row
  const seq = (row.first_seq ?? row.seq) - 1
  if (seq === 0) return genesis
  if (pos === null || epoch === null || hash === null) throw missingEvent(row.run_id, seq)
  return { seq, pos, epoch, hash }
}
