import {
  LedgerDamagedError,
  type Ledger,
  type Message,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { beginningOf, emptyHistoryDigest, historyDigests, withDigests } from '@tallystick/core/machine'
import { digestOf, type Json } from '@tallystick/core/vocabulary'

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
    const digests = historyDigests(messages)
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

  /** The value of a line, whole. Throws a `LedgerDamagedError` where what it shares was not in a line before it. */
  async whole(value: unknown): Promise<unknown> {
    if (!isCarried(value)) return value
    const { runId, shared, ...event } = value
    this.#read.add(runId)
    if (shared === undefined) return value
    return { ...event, runId, messages: followed(await this.#sharedMessages(shared), event.messages) }
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
        return beginningOf(event.messages, count)
    }
    throw new LedgerDamagedError(
      `it begins with ${count} messages of event ${seq} of run ${runId}, which no line before it holds, or the ledger holds no more.`,
    )
  }
}

/** Messages with others after them. Only the digests of those are computed. */
function followed(messages: readonly Message[], others: readonly Message[]): readonly Message[] {
  let digest = historyDigests(messages).at(-1) ?? emptyHistoryDigest
  const added = others.map((message) => (digest = digestOf([digest, message])))
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
