import {
  type Ledger,
  LedgerDamagedError,
  type Message,
  type RunId,
  RunNotFoundError,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  digestBeginning,
  emptyHistoryDigest,
  computeHistoryDigests,
  option,
  requireLedger,
  requireOptions,
  withDigests,
} from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import { toCanonicalJson, computeDigest, type Json } from '@tallystick/core/vocabulary'
import { listUntilBadIds } from './format/event-row.ts'
import { readRecordedEvents } from './store/read-events.ts'

/** The first messages that a run begins with, as many as an event before it in the same export holds. */
interface SharedHistory {
  readonly runId: RunId
  readonly seq: number
  readonly messages: number
}

/**
 * Leaves out of an export the messages that it holds already: those with which a run begins, if an earlier event of the
 * export begins with them, too. So an export of a session grows with its messages, and an export of one run is whole.
 */
export class ExportedHistories {
  readonly #exported = new Map<string, Omit<SharedHistory, 'messages'>>()

  /** The event as its line holds it. */
  withoutShared(event: RuntimeEvent): RuntimeEvent {
    if (event.type !== 'history_carried' || event.messages.length === 0) return event
    const { runId, seq, messages } = event
    const digests = computeHistoryDigests(messages)
    const count = digests.findLastIndex((digest) => this.#exported.has(digest)) + 1
    const shared = this.#exported.get(digests[count - 1] ?? '')
    this.#exported.set(digests.at(-1) ?? '', { runId, seq })
    if (shared === undefined) return event
    const line = { ...event, messages: messages.slice(count), shared: { ...shared, messages: count } }
    return line
  }
}

/** Makes the lines of one import whole, with what the ledger that they are imported into has of those before them. */
export class ImportedHistories {
  readonly #ledger: Ledger
  readonly #read = new Set<RunId>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /** The value of a line, whole. Throws a `LedgerDamagedError` if what it shares was not in a line before it. */
  async whole(value: unknown): Promise<unknown> {
    if (!isCarried(value)) return value
    const { runId, shared, ...event } = value
    this.#read.add(runId)
    if (shared === undefined) return value
    return { ...event, runId, messages: appendMessages(await this.#sharedMessages(shared), event.messages) }
  }

  async #sharedMessages(shared: Json): Promise<readonly Message[]> {
    const { runId, seq, messages: count } = (shared ?? {}) as unknown as SharedHistory
    if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(count) || count < 0) {
      throw new LedgerDamagedError('it does not say which event it shares messages with.')
    }
    // A file from elsewhere must not take in messages of another run of this ledger.
    const events = this.#read.has(runId) ? this.#ledger.read(runId, { fromSeq: seq, toSeq: seq }) : []
    for await (const event of events) {
      if (event.type === 'history_carried' && event.messages.length >= count)
        return digestBeginning(event.messages, count)
    }
    throw new LedgerDamagedError(
      `it begins with ${count} messages of event ${seq} of run ${runId}, which no line before it holds, or the ledger holds no more.`,
    )
  }
}

/** Messages with others after them. Only the digests of those are computed. */
function appendMessages(messages: readonly Message[], others: readonly Message[]): readonly Message[] {
  let digest = computeHistoryDigests(messages).at(-1) ?? emptyHistoryDigest
  const added = others.map((message) => (digest = computeDigest([digest, message])))
  return withDigests(others, added, messages)
}

interface Carried {
  readonly runId: RunId
  readonly messages: readonly Message[]
  readonly shared?: Json
}

function isCarried(value: unknown): value is Carried {
  if (typeof value !== 'object' || value === null) return false
  const { type, messages } = value as Record<string, unknown>
  return type === 'history_carried' && Array.isArray(messages)
}

const exportedBefore = option.valueThat(
  'new ExportedHistories(), the same for all runs of a file',
  (value) => value instanceof ExportedHistories,
)

const anEvent = option.valueThat('an event, such as ledger.read yields', (value) => {
  const { runId, type } = Object(value) as { readonly runId?: unknown; readonly type?: unknown }
  return typeof runId === 'string' && typeof type === 'string'
})

/**
 * Yields the events of one run, or of every run in the order in which the runs were made, as JSON Lines: one object a
 * line, without the line feed. They are exported as they were recorded, in any version; `importEvents` reads them.
 *
 * First runId, seq, epoch, turn, toolCallId (if there is one), type, v and at, then the keys of the body in code-unit
 * order, so that equal events make equal lines. Types that this version does not know are exported too. Carried
 * messages that an earlier run of the export carried too are exported once: `shared` names the event of that run, and
 * how many of its messages come first.
 *
 * To export runs one by one into one file, pass the same `histories` to each call.
 *
 * Rejects with `RunNotFoundError` if the ledger has no such run, and with `LedgerDamagedError` after the last run if
 * the ledger has rows with invalid run ids. Rejects with a `ConfigurationError` for a value that is not a ledger, and for a run id
 * that is not a text.
 */
export async function* exportEvents(
  ledger: Ledger,
  runId?: RunId,
  histories: ExportedHistories = new ExportedHistories(),
): AsyncGenerator<string> {
  requireLedger('exportEvents', ledger)
  if (runId !== undefined) requireTextId('exportEvents', runId)
  requireOptions('exportEvents', exportedBefore, histories, 'the third argument')
  for await (const exported of runId === undefined ? listEveryRun(ledger) : yieldRun(ledger, runId)) {
    for await (const event of readRecordedEvents(ledger, exported))
      yield toExportLine(histories.withoutShared(event))
  }
}

/** Yields the oldest run first, since a ledger lists the newest first and an import creates the oldest first. */
async function* listEveryRun(ledger: Ledger): AsyncGenerator<RunId> {
  const newestFirst: RunId[] = []
  const { error } = await listUntilBadIds(ledger.runs(), ({ runId }) => void newestFirst.push(runId))
  yield* newestFirst.toReversed()
  if (error) throw error
}

async function* yieldRun(ledger: Ledger, runId: RunId): AsyncGenerator<RunId> {
  if ((await ledger.head(runId)) === undefined) throw new RunNotFoundError(runId)
  yield runId
}

/** An event as one line of an export. Throws a `ConfigurationError` for a value that is not an event. */
export function toExportLine(event: RuntimeEvent): string {
  requireOptions('toExportLine', anEvent, event, 'the event')
  const { runId, seq, epoch, turn, toolCallId, type, v, at } = event
  const call = toolCallId !== undefined && { toolCallId }
  const envelope = { runId, seq, epoch, turn, ...call, type, v, at }
  const body = Object.entries(event).filter(([key]) => !Object.hasOwn(envelope, key))
  const rest = toCanonicalJson(Object.fromEntries<Json>(body))
  return rest === '{}'
    ? JSON.stringify(envelope)
    : `${JSON.stringify(envelope).slice(0, -1)},${rest.slice(1)}`
}

const byteChunks = option.valueThat(
  'a stream of bytes, such as createReadStream(path)',
  (value) => typeof value === 'object' && value !== null && Symbol.asyncIterator in value,
)

const lineFeed = 0x0a

/**
 * The lines of a stream of bytes, such as a file that is read, each without its line feed. Lines end at a line feed and
 * nowhere else: JSON may hold the other characters that some readers of lines end them at. Holds one line at a time.
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  requireOptions('splitLines', byteChunks, chunks, 'the first argument')
  let begun: Uint8Array[] = []
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)])
      begun = []
      from = end + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}
