import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { requireRead } from '@tallystick/core/store-kit'
import { type Decoding, findHistoryName, isPlain } from '../format/body.ts'
import {
  type EventRow,
  genesis,
  type Link,
  createMissingEventError,
  type ReadableRow,
  readEvent,
  type Version,
} from '../format/event-row.ts'
import { HistoryReader, type HistoryRow, readHistory } from '../format/history.ts'
import { type Keyring, Sealer } from '../format/keyring.ts'
import type { StoreDatabase } from './database.ts'
import { readHead, readHistoryRow, readRows } from './records.ts'
import { getInternals } from './store.ts'

type ReadRange = Parameters<Ledger['read']>[1]

/** Names the method of a read that yields its events batch by batch. */
const inBatches: unique symbol = Symbol('tallystick.ledger.in-batches')

/**
 * Events of a run, up to the last one when the first is requested. Each is checked against the chain before it is returned:
 * `LedgerDamagedError` at the first that was changed or is missing. Nothing is returned once the ledger was closed.
 */
export function readEvents(
  database: StoreDatabase,
  rows: RowReader,
  runId: RunId,
  range?: ReadRange,
): AsyncGenerator<RuntimeEvent> {
  const batches = () => readBatches(database, rows, { runId, range, version: 'newest' })
  return Object.assign(flattenBatches(database, batches()), { [inBatches]: batches })
}

async function* flattenBatches(
  database: StoreDatabase,
  batches: AsyncIterable<readonly RuntimeEvent[]>,
): AsyncGenerator<RuntimeEvent> {
  for await (const batch of batches) {
    for (const event of batch) {
      database.requireOpen()
      yield event
    }
  }
}

/**
 * Calls `onEvent` with each event of a read. Events of a ledger of this package come batch by batch, without a turn of the
 * queue for each. Throws what the read throws, and what `onEvent` throws.
 */
export async function visitEvents(
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
  database: StoreDatabase,
  rows: RowReader,
  { runId, range, version }: BatchedRead,
): AsyncGenerator<readonly RuntimeEvent[]> {
  requireRead(runId, range)
  const headSeq = (await readHead(database, runId))?.seq ?? 0
  const fromSeq = Math.max(range?.fromSeq ?? 1, 1)
  const toSeq = Math.min(range?.toSeq ?? headSeq, headSeq)
  if (!(fromSeq <= toSeq)) return
  let link = await linkBefore(database, runId, fromSeq)
  while (link.seq < toSeq) {
    const batch = await rows.readable(await readRows(database, { runId, fromSeq: link.seq + 1, toSeq }))
    const events: RuntimeEvent[] = []
    let failure: unknown
    try {
      for (const row of batch) {
        const event = readEvent(link, row, version)
        if (event === undefined) throw createMissingEventError(runId, link.seq + 1)
        events.push(event)
        link = row
      }
      if (batch.length === 0) throw createMissingEventError(runId, link.seq + 1)
    } catch (error) {
      failure = error
    }
    // The sound events before a damaged one are returned first.
    if (events.length > 0) yield events
    // oxlint-disable-next-line typescript/only-throw-error -- it is thrown on as it came
    if (failure !== undefined) throw failure
  }
}

async function linkBefore(database: StoreDatabase, runId: RunId, fromSeq: number): Promise<Link> {
  const seq = Math.ceil(fromSeq) - 1
  if (seq === 0) return genesis
  const [row] = await readRows(database, { runId, fromSeq: seq, toSeq: seq })
  if (row === undefined) throw createMissingEventError(runId, seq)
  return row
}

/**
 * Yields the events of a run as they were recorded, in whatever version. A ledger from elsewhere, which lends no rows,
 * decides itself how it reads them. Throws `LedgerDamagedError` at the first event that was changed or is missing.
 */
export async function* readRecordedEvents(ledger: Ledger, runId: RunId): AsyncGenerator<RuntimeEvent> {
  const internals = getInternals(ledger)
  if (internals === undefined) return yield* ledger.read(runId)
  const { store, rows } = internals
  yield* flattenBatches(store.database, readBatches(store.database, rows, { runId, version: 'recorded' }))
}

/** Brings rows together with the keys and histories that their bodies need to be read. */
export class RowReader {
  readonly #database: Pick<StoreDatabase, 'ask'>
  readonly #keyring: Keyring | undefined
  readonly #histories = new HistoryReader()

  constructor(database: Pick<StoreDatabase, 'ask'>, keyring: Keyring | undefined) {
    this.#database = database
    this.#keyring = keyring
  }

  /** Forgets what was read before, so that all of it comes from the store again. */
  forget(): void {
    this.#histories.forget()
  }

  /** The rows themselves if none needs anything. */
  async readable<Row extends EventRow>(rows: readonly Row[]): Promise<readonly (Row & ReadableRow)[]> {
    if (rows.every(isPlain)) return rows
    const sealers = await this.#readSealers(rows)
    const history = new Map<string, HistoryRow>()
    for (const row of rows) {
      const name = orUndefined(() => findHistoryName(row))
      if (name === undefined || history.has(name)) continue
      const read = await readHistory(
        name,
        this.#histories,
        (each) => history.get(each) ?? readHistoryRow(this.#database, each),
      )
      for (const [digest, found] of read) history.set(digest, found)
    }
    const decoding: Decoding = {
      sealers,
      hasKeys: this.#keyring !== undefined,
      history: (name, sealer) => this.#histories.restore(name, history, sealer),
    }
    return rows.map((row) => (isPlain(row) ? row : { ...row, decoding }))
  }

  async #readSealers(rows: readonly EventRow[]): Promise<ReadonlyMap<string, Sealer>> {
    const sealers = new Map<string, Sealer>()
    if (this.#keyring === undefined) return sealers
    for (const id of new Set(rows.map((row) => row.key_id))) {
      const bytes = typeof id === 'string' ? await this.#keyring.key(id) : undefined
      if (typeof id === 'string' && bytes) sealers.set(id, new Sealer({ id, bytes }))
    }
    return sealers
  }
}

/** Damaged text refers to nothing here; decoding says so. */
function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
