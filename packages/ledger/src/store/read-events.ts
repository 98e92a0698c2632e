import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { requireRead } from '@tallystick/core/store-kit'
import { genesis, missingEvent, readEvent, type Link, type Version } from '../format/event-row.ts'
import { internalsOf } from './internals.ts'
import type { RowReader } from './readable-rows.ts'
import type { Store } from './store.ts'

type ReadRange = Parameters<Ledger['read']>[1]

/** Names the method of a read that yields its events batch by batch. */
const inBatches: unique symbol = Symbol('tallystick.ledger.in-batches')

/** What a read asks of a store. */
type ReadStore = Pick<Store, 'head' | 'events' | 'requireOpen'>

/**
 * Events of a run, up to where it ends when the first is asked for. Each is checked against the chain before it is handed
 * out: `LedgerDamagedError` at the first that has changed, or that is missing. Nothing is handed out once the ledger was
 * closed.
 */
export function readEvents(
  store: ReadStore,
  rows: RowReader,
  runId: RunId,
  range?: ReadRange,
): AsyncGenerator<RuntimeEvent> {
  const batches = () => readBatches(store, rows, { runId, range, version: 'newest' })
  return Object.assign(oneByOne(store, batches()), { [inBatches]: batches })
}

async function* oneByOne(
  store: ReadStore,
  batches: AsyncIterable<readonly RuntimeEvent[]>,
): AsyncGenerator<RuntimeEvent> {
  for await (const batch of batches) {
    for (const event of batch) {
      store.requireOpen()
      yield event
    }
  }
}

/**
 * Calls `onEvent` with each event of a read. Events of a ledger of this package come batch by batch, without a turn of the
 * queue for each. Throws what the read throws, and what `onEvent` throws.
 */
export async function eachEvent(
  events: AsyncIterable<RuntimeEvent> & {
    readonly [inBatches]?: () => AsyncIterable<readonly RuntimeEvent[]>
  },
  onEvent: (event: RuntimeEvent) => void,
): Promise<void> {
  const batches = events[inBatches]?.()
  if (batches === undefined) for await (const event of events) onEvent(event)
  else for await (const batch of batches) for (const event of batch) onEvent(event)
}

interface BatchedRead {
  readonly runId: RunId
  readonly range?: ReadRange
  readonly version: Version
}

async function* readBatches(
  store: ReadStore,
  rows: RowReader,
  { runId, range, version }: BatchedRead,
): AsyncGenerator<readonly RuntimeEvent[]> {
  requireRead(runId, range)
  const headSeq = (await store.head(runId))?.seq ?? 0
  const fromSeq = Math.max(range?.fromSeq ?? 1, 1)
  const toSeq = Math.min(range?.toSeq ?? headSeq, headSeq)
  if (!(fromSeq <= toSeq)) return
  let link = await linkBefore(store, runId, fromSeq)
  while (link.seq < toSeq) {
    const batch = await rows.readable(await store.events({ runId, fromSeq: link.seq + 1, toSeq }))
    const events: RuntimeEvent[] = []
    let failure: unknown
    try {
      for (const row of batch) {
        const event = readEvent(link, row, version)
        if (event === undefined) throw missingEvent(runId, link.seq + 1)
        events.push(event)
        link = row
      }
      if (batch.length === 0) throw missingEvent(runId, link.seq + 1)
    } catch (error) {
      failure = error
    }
    // What is sound before a damaged event is handed out first.
    if (events.length > 0) yield events
    // oxlint-disable-next-line typescript/only-throw-error -- it is thrown on as it came
    if (failure !== undefined) throw failure
  }
}

async function linkBefore(store: ReadStore, runId: RunId, fromSeq: number): Promise<Link> {
  const seq = Math.ceil(fromSeq) - 1
  if (seq === 0) return genesis
  const [row] = await store.events({ runId, fromSeq: seq, toSeq: seq })
  if (row === undefined) throw missingEvent(runId, seq)
  return row
}

/**
 * Yields the events of a run as they were recorded, in whatever version. A ledger from elsewhere, which lends no rows,
 * decides itself how it reads them. Throws `LedgerDamagedError` at the first event that was changed or is missing.
 */
export async function* recordedEvents(ledger: Ledger, runId: RunId): AsyncGenerator<RuntimeEvent> {
  const internals = internalsOf(ledger)
  if (internals === undefined) return yield* ledger.read(runId)
  const { store, rows } = internals
  yield* oneByOne(store, readBatches(store, rows, { runId, version: 'recorded' }))
}
