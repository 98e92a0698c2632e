import type { EventQuery, RuntimeEvent } from '@tallystick/core'
import { eventAfter, missingEvent } from './checked-event.ts'
import { outOfOrder, storedEvent } from '../record/event-row.ts'
import {
  askedEvents,
  strandsOf,
  type AskedEvents,
  type Cursor,
  type FoundPage,
  type FoundRow,
  type SearchedStore,
  type Strand,
} from './event-search.ts'
import { genesis, type Link } from '../record/link-check.ts'

/**
 * Events of a store in the order of their places. Each is checked against the event before it in its run, so that
 * nothing is ever built on bytes that have changed. Throws `LedgerDamagedError` at the first that has.
 *
 * Holds a page of each run that is under way at the place where the search is, and no more.
 */
export async function* findEvents(
  store: SearchedStore,
  query: EventQuery = {},
): AsyncGenerator<RuntimeEvent> {
  const asked = askedEvents(query)
  // A store that is closed refuses this query as any other.
  if (asked === undefined) return void (await store.places({ ...nothingAsked }))
  const waiting = [...(await strandsOf(store, asked))].toReversed()
  const open: OpenStrand[] = []
  for (;;) {
    const first = firstOf(open)
    const next = waiting.at(-1)
    if (next && (first === undefined || startOf(next) <= first.head.pos)) {
      waiting.pop()
      const opened = await OpenStrand.open(store, asked, next)
      if (opened) open.push(opened)
      continue
    }
    if (first === undefined) return
    yield checkedEvent(first.head)
    if (!(await first.advance())) open.splice(open.indexOf(first), 1)
  }
}

const nothingAsked: AskedEvents = { turn: null, toolCallId: null, types: null, fromAt: 0, toAt: -1 }

function firstOf(open: readonly OpenStrand[]): OpenStrand | undefined {
  let first: OpenStrand | undefined
  for (const strand of open) if (first === undefined || strand.head.pos < first.head.pos) first = strand
  return first
}

function startOf(strand: Strand): number {
  return strand.by === 'place' ? strand.fromPos : strand.run.pos
}

/** The pages of a strand, one after the other. */
class OpenStrand {
  readonly #turnTo: (after: Cursor) => Promise<FoundPage>
  #page: FoundPage
  #index = 0
  /** The event that it is at. */
  head: FoundRow

  private constructor(turnTo: (after: Cursor) => Promise<FoundPage>, page: FoundPage, head: FoundRow) {
    this.#turnTo = turnTo
    this.#page = page
    this.head = head
  }

  /** `undefined` where the strand has no event at all. */
  static async open(
    store: SearchedStore,
    asked: AskedEvents,
    strand: Strand,
  ): Promise<OpenStrand | undefined> {
    const turnTo = (after: Cursor): Promise<FoundPage> => nextPage(store, asked, strand, after)
    const page = await turnTo({ pos: startOf(strand) - 1, seq: 0 })
    const [head] = page.rows
    return head && new OpenStrand(turnTo, page, head)
  }

  /** Goes to the next event; whether there is one. */
  async advance(): Promise<boolean> {
    this.#index++
    if (this.#index >= this.#page.rows.length && this.#page.next) {
      this.#page = await this.#turnTo(this.#page.next)
      this.#index = 0
    }
    const head = this.#page.rows[this.#index]
    if (head) this.head = head
    return head !== undefined
  }
}

/** The next page that holds anything; an empty one behind the last. */
async function nextPage(
  store: SearchedStore,
  asked: AskedEvents,
  strand: Strand,
  after: Cursor,
): Promise<FoundPage> {
  let cursor = after
  for (;;) {
    const page = await store.page(asked, strand, cursor)
    requireOrder(page, strand, cursor)
    if (page.rows.length > 0 || page.next === undefined) return page
    cursor = page.next
  }
}

/** An index that is out of order would have the same page read for ever. */
function requireOrder({ rows }: FoundPage, strand: Strand, after: Cursor): void {
  let last = after
  for (const row of rows) {
    const isBehind = row.pos > last.pos && (strand.by === 'place' || row.seq > last.seq)
    if (!isBehind) throw outOfOrder(strand.by === 'place' ? 'its events' : `the events of run ${row.run_id}`)
    last = row
  }
}

/** The event of a row, checked against the link before it. Throws `LedgerDamagedError` where it is not as it was written. */
export function checkedEvent(row: FoundRow): RuntimeEvent {
  const event = eventAfter(linkBefore(row), storedEvent(row))
  if (event === undefined) throw missingEvent(row.run_id, row.seq)
  return event
}

function linkBefore(row: FoundRow): Link {
  const { seq, previous_pos: pos, previous_epoch: epoch, previous_hash: hash } = row
  if (seq === 1) return genesis
  if (pos === null || epoch === null || hash === null) throw missingEvent(row.run_id, seq - 1)
  return { seq: seq - 1, pos, epoch, hash }
}
