import { LedgerDamagedError, type RunId, type RuntimeEvent, type Ledger } from '@tallystick/core'
import { idFaultOf } from '@tallystick/core/vocabulary'
import { linkFault, type Link } from '../record/link-check.ts'
import { decodedEvents, decodedSegments } from '../content/event/decoded-events.ts'
import type { WantedType } from '../content/event/segments.ts'
import { namedRun } from '../record/stored-ids.ts'
import { isSegment, type StoredRow } from '../record/stored-row.ts'
import { hasUpcaster, upcast } from '../versions/upcast.ts'

/** Events of one run with `seq` in a range, both ends included. */
export interface EventRange {
  readonly runId: string
  readonly fromSeq: number
  readonly toSeq: number
}

/** The part of a range that the run has now. */
export function presentRange(
  runId: RunId,
  headSeq: number,
  range?: Parameters<Ledger['read']>[1],
): EventRange {
  return {
    runId,
    fromSeq: Math.max(range?.fromSeq ?? 1, 1),
    toSeq: Math.min(range?.toSeq ?? headSeq, headSeq),
  }
}

/** The events of a row, checked as `recordedEventsAfter` does, as today's code knows them. */
export function eventsAfter(
  previous: Link,
  stored: StoredRow,
  isWanted?: WantedType,
): readonly RuntimeEvent[] | undefined {
  const events = recordedEventsAfter(previous, stored, isWanted)
  const mayBeOlder = isSegment(stored) ? hasUpcaster(stored) : events?.some(hasUpcaster)
  return mayBeOlder ? events?.map(upcast) : events
}

/**
 * The events of a row as they were recorded, in whatever version, checked against the link before it, so that nothing is
 * ever built on bytes that have changed; `undefined` where they are not the next ones of the run. Throws
 * `LedgerDamagedError` where they are not as they were written. With `isWanted`, events of other types may be left out: the
 * chain is checked over all, and only wanted ones are parsed.
 */
export function recordedEventsAfter(
  previous: Link,
  stored: StoredRow,
  isWanted?: WantedType,
): readonly RuntimeEvent[] | undefined {
  const fault = linkFault(previous, stored)
  if (fault?.what === 'seq') return undefined
  if (fault !== undefined) {
    throw damaged(stored.runId, stored.firstSeq ?? stored.seq, `its ${fault.what} is not what was written`)
  }
  if (isSegment(stored)) {
    const events = decodedEvents(stored)
    requireIds(events)
    return events
  }
  const segments = decodedSegments(stored, isWanted)
  for (const events of segments) requireIds(events)
  return segments.flat()
}

/** Several deltas differ in their text, number and time, and in no id. */
function requireIds([event]: readonly RuntimeEvent[]): void {
  const badId = event && idFaultOf(event)
  if (badId) throw damaged(event.runId, event.seq, `its ${badId.path} is not ${badId.expected}`)
}

/** A range that the run has now, and the link before the row that holds its first event. */
export interface BegunRead {
  readonly present: EventRange
  readonly before: Link
}

/** A read, as the store of it carries it out. */
interface CheckedRead {
  readonly begin: () => Promise<BegunRead>
  readonly batches: (range: EventRange) => AsyncIterable<readonly StoredRow[]>
  /** Throws where the ledger was closed meanwhile. */
  readonly requireOpen: () => void
}

/**
 * Yields the events of the range that `begin` settles, each checked against the link before it. `requireOpen` is called
 * before each event, so that a ledger that was closed meanwhile yields no more. Throws `LedgerDamagedError` at
 * the first event that has changed, or that is missing.
 */
export function checkedEvents(read: CheckedRead): AsyncGenerator<RuntimeEvent> {
  return Object.assign(oneByOne(read), { [inRows]: () => rowByRow(read) })
}

/** Names the method of a read that yields its events row by row. */
const inRows: unique symbol = Symbol('tallystick.ledger.in-rows')

/**
 * Calls `onEvent` with each event of a read. Events of a ledger of this package come row by row, without a turn of the queue
 * for each. Throws what the read throws, and what `onEvent` throws.
 */
export async function eachEvent(
  events: AsyncIterable<RuntimeEvent> & {
    readonly [inRows]?: () => AsyncIterable<readonly RuntimeEvent[]>
  },
  onEvent: (event: RuntimeEvent) => void,
): Promise<void> {
  const rows = events[inRows]?.()
  if (rows === undefined) {
    for await (const event of events) onEvent(event)
    return
  }
  for await (const row of rows) for (const event of row) onEvent(event)
}

async function* oneByOne(read: CheckedRead): AsyncGenerator<RuntimeEvent> {
  for await (const row of rowByRow(read)) {
    for (const event of row) {
      read.requireOpen()
      yield event
    }
  }
}

async function* rowByRow(read: CheckedRead): AsyncGenerator<readonly RuntimeEvent[]> {
  const checked = new CheckedRows(await read.begin())
  if (checked.isEmpty) return
  for await (const batch of read.batches(checked.range)) {
    for (const stored of batch) {
      const events = checked.next(stored)
      read.requireOpen()
      yield events
    }
  }
  checked.end()
}

/** The rows of a range, one after the other. */
class CheckedRows {
  readonly range: EventRange
  #previous: Link
  /** Whether the last row held events after the range. */
  #isOver = false

  constructor({ present, before }: BegunRead) {
    this.range = present
    this.#previous = before
  }

  get isEmpty(): boolean {
    return this.range.fromSeq > this.range.toSeq
  }

  /** The events of the next row that are within the range. */
  next(stored: StoredRow): readonly RuntimeEvent[] {
    if (this.#isOver) return []
    const { runId, fromSeq, toSeq } = this.range
    const { seq: before } = this.#previous
    const events = eventsAfter(this.#previous, stored)
    if (events === undefined) throw missingEvent(runId, before + 1)
    this.#previous = stored
    this.#isOver = stored.seq > toSeq
    const isWithin = before + 1 >= fromSeq && !this.#isOver
    return isWithin ? events : events.filter(({ seq }) => seq >= fromSeq && seq <= toSeq)
  }

  /** Throws where rows of the range are missing after the last one. */
  end(): void {
    const { runId, toSeq } = this.range
    if (this.#previous.seq < toSeq) throw missingEvent(runId, this.#previous.seq + 1)
  }
}

/** The refusal to read past an event that should be there. */
export function missingEvent(runId: string, seq: number): LedgerDamagedError {
  return damaged(runId, seq, 'the event is missing')
}

function damaged(runId: string, seq: number, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${namedRun(runId)} is damaged at seq ${seq}: ${what}. What follows cannot be trusted, so reading stops here. ` +
      'Run verify for the whole picture, and restore a copy.',
  )
}
