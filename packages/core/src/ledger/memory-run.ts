import type { RuntimeEvent } from '../events/event.ts'
import { canonicalJson, deepFreeze } from '../values/json.ts'
import {
  emptyHead,
  endedBefore,
  endsRun,
  onceKeyOf,
  placeTaken,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  secondFact,
  type SessionPlace,
  sessionPlaceOf,
  storableDigests,
  storableText,
  unreadInbox,
} from './append-rules.ts'
import type { AppendOptions, ExpectedHead, Head, InboxEntry, RunRecord } from './ledger.ts'
import type { RunId } from '../values/ids.ts'
import { carriedMessages, historyOf, type History, historyDigests, withMessages } from '../machine/history.ts'
import type { Message } from '../events/content.ts'

/**
 * An event as a memory ledger keeps it: deeply frozen, so that nothing can be written to the record, and without the messages
 * of a history that it carries, which are kept once by their digest. A `ConfigurationError` for what JSON cannot carry.
 *
 * An event that a caller has frozen is kept itself, with a getter that it may have: the runtime makes none, and to look for
 * one would make each append a tenth slower.
 */
export function keptEvent(event: RuntimeEvent): RuntimeEvent {
  const kept = event.type === 'history_carried' ? withoutMessages(event) : event
  return isFrozenJson(kept)
    ? kept
    : deepFreeze(JSON.parse(storableText(kept, () => nameOf(kept))) as RuntimeEvent)
}

function withoutMessages(event: RuntimeEvent & { readonly type: 'history_carried' }): RuntimeEvent {
  const { messages: _kept, ...rest } = event
  return rest as RuntimeEvent
}

/** The digests of the histories that events carry, by the number of the event; `undefined` where none carries one. */
function carriedHistories(events: readonly RuntimeEvent[]): ReadonlyMap<number, string> | undefined {
  let digests: Map<number, string> | undefined
  for (const event of events) {
    if (event.type !== 'history_carried') continue
    digests ??= new Map()
    digests.set(event.seq, storableDigests(event.messages, () => nameOf(event)).at(-1) ?? '')
  }
  return digests
}

function nameOf({ seq, type, runId }: RuntimeEvent): string {
  return `Event ${seq} (${type}) of run ${runId}`
}

/** Returns true if two kept events are equal, byte for byte. */
function isSameEvent(kept: RuntimeEvent, other: RuntimeEvent | undefined): boolean {
  return other !== undefined && (kept === other || textOf(kept) === textOf(other))
}

function textOf(event: RuntimeEvent): string {
  return canonicalJson(event)
}

/** Returns true if a value is deeply frozen and equals what JSON would read back. */
function isFrozenJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value === 'object') return value === null || isFrozenObject(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

function isFrozenObject(value: object): boolean {
  if (!Object.isFrozen(value)) return false
  if (Array.isArray(value)) return value.every(isFrozenJson) && !hasHoles(value)
  if (Object.getPrototypeOf(value) !== Object.prototype || Object.getOwnPropertySymbols(value).length > 0)
    return false
  const fields = value as Readonly<Record<string, unknown>>
  for (const key in fields) {
    const field = fields[key]
    // Most fields of most events are texts and numbers.
    const isPlain = typeof field === 'string' || (field !== 0 && Number.isFinite(field))
    if (!isPlain && !isFrozenJson(field)) return false
  }
  return true
}

function hasHoles(items: readonly unknown[]): boolean {
  return Object.keys(items).length !== items.length
}

/**
 * One run of a `memoryLedger`. It keeps events frozen and inbox entries as text, so that callers who hold the object cannot
 * change the record. Every member is synchronous, and so atomic.
 */
export class MemoryRun {
  readonly runId: RunId
  readonly #histories: MemoryHistories
  #epoch: number = emptyHead.epoch
  readonly #events: RuntimeEvent[] = []
  // A ledger holds many runs, and most of them have few of these: they are made when there is the first.
  /** The digests of the histories that events carry, by the number of the event: they are kept without their messages. */
  #carried: Map<number, string> | undefined
  #onceKeys: Set<string> | undefined
  /** Entries not yet taken, in the order they were put. */
  #inbox: Map<string, string> | undefined
  /** Every key ever put. */
  #inboxKeys: Set<string> | undefined
  /** The session of the run and its place there, once it has begun. */
  #place: SessionPlace | undefined

  constructor(runId: RunId, histories: MemoryHistories) {
    this.runId = runId
    this.#histories = histories
  }

  get head(): Head {
    return { seq: this.#events.length, epoch: this.#epoch }
  }

  get record(): RunRecord {
    return { runId: this.runId, head: this.head, ...this.#place }
  }

  get sessionId(): string | undefined {
    return this.#place?.sessionId
  }

  /** The place in its session; 0 where it belongs to none. */
  get sessionPlace(): number {
    return this.#place?.sessionPlace ?? 0
  }

  /** Appends; `isTaken` says whether another run has a place in a session. */
  append(
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
    isTaken: (place: SessionPlace) => boolean,
  ): Head {
    requireWellFormed(this.runId, expected, events)
    const kept = events.map(keptEvent)
    const carried = carriedHistories(events)
    if (this.#stands(expected.expectedSeq, kept, carried)) {
      // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
      return { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    }
    requireHead(this.runId, this.head, expected)
    const onceKeys = this.#unstatedKeys(events)
    this.#requireReadInbox(events, options)
    const place = expected.expectedSeq === 0 ? sessionPlaceOf(events) : undefined
    if (place && isTaken(place)) throw placeTaken(this.runId, place)
    this.#place ??= place
    for (const event of kept) this.#events.push(event)
    if (carried) this.#keepHistories(events, carried)
    if (onceKeys) this.#keepStated(onceKeys)
    this.#take(options)
    return this.head
  }

  #keepStated(onceKeys: Set<string>): void {
    if (this.#onceKeys === undefined) this.#onceKeys = onceKeys
    else for (const key of onceKeys) this.#onceKeys.add(key)
  }

  #take({ consumedInboxKeys = [] }: AppendOptions): void {
    for (const key of consumedInboxKeys) this.#inbox?.delete(key)
  }

  #keepHistories(events: readonly RuntimeEvent[], carried: ReadonlyMap<number, string>): void {
    this.#carried ??= new Map()
    for (const [seq, digest] of carried) this.#carried.set(seq, digest)
    for (const event of events) if (event.type === 'history_carried') this.#histories.keep(event.messages)
  }

  acquire(): Head {
    this.#epoch += 1
    return this.head
  }

  read(fromSeq = 1, toSeq: number = Infinity): Generator<RuntimeEvent> {
    const events = this.#between(fromSeq, toSeq)
    return this.#carried ? this.#withHistories(events, this.#carried) : events
  }

  /** The events from one number to another, both included. What is added while they are read is not among them. */
  *#between(fromSeq: number, toSeq: number): Generator<RuntimeEvent> {
    const last = Math.min(toSeq, this.#events.length)
    for (let seq = Math.max(fromSeq, 1); seq <= last; seq++) yield this.#events[seq - 1] as RuntimeEvent
  }

  *#withHistories(
    events: Iterable<RuntimeEvent>,
    carried: ReadonlyMap<number, string>,
  ): Generator<RuntimeEvent> {
    for (const event of events) {
      const history = carried.get(event.seq)
      yield history === undefined
        ? event
        : ({ ...event, messages: this.#histories.messages(history) } as RuntimeEvent)
    }
  }

  /** Returns true if the key is new. */
  put({ key, command, at }: InboxEntry): boolean {
    requireInboxKey(key)
    const text = storableText({ key, command, at }, `The inbox entry ${key} of run ${this.runId}`)
    if (this.#inboxKeys?.has(key)) return false
    if (this.#onceKeys?.has('run_finished')) throw endedBefore(this.runId)
    this.#inboxKeys = (this.#inboxKeys ?? new Set()).add(key)
    this.#inbox = (this.#inbox ?? new Map()).set(key, text)
    return true
  }

  inbox(): readonly InboxEntry[] {
    if (this.#inbox === undefined) return []
    return [...this.#inbox.values()].map((text) => JSON.parse(text) as InboxEntry)
  }

  /** Returns true if these very events come after `seq`: then they were written, and their acknowledgement was lost. */
  #stands(
    seq: number,
    kept: readonly RuntimeEvent[],
    carried: ReadonlyMap<number, string> = new Map(),
  ): boolean {
    // Nearly every append comes to the end of its run.
    if (kept.length === 0 || seq >= this.#events.length) return false
    if (!kept.every((event, place) => isSameEvent(event, this.#events[seq + place]))) return false
    return [...carried].every(([place, digest]) => this.#carried?.get(place) === digest)
  }

  #requireReadInbox(events: readonly RuntimeEvent[], { consumedInboxKeys }: AppendOptions): void {
    if (!endsRun(events)) return
    if (this.#inbox === undefined) return
    const taken = new Set(consumedInboxKeys)
    if ([...this.#inbox.keys()].some((key) => !taken.has(key))) throw unreadInbox(this.runId)
  }

  /** The keys that events state for the first time; `undefined` where they state none. */
  #unstatedKeys(events: readonly RuntimeEvent[]): Set<string> | undefined {
    let keys: Set<string> | undefined
    for (const event of events) {
      const key = onceKeyOf(event)
      if (key === undefined) continue
      if (this.#onceKeys?.has(key) || keys?.has(key)) throw secondFact(this.runId, key)
      keys = (keys ?? new Set()).add(key)
    }
    return keys
  }
}

/**
 * The beginnings of runs of sessions, each message kept once: a history is named by its running digest, and shares its store
 * with the longest one that is there already.
 */
export class MemoryHistories {
  readonly #histories = new Map<string, History>()

  /** Keeps messages under the digest of all of them. */
  keep(messages: readonly Message[]): void {
    const digests = historyDigests(messages)
    const shared = digests.findLastIndex((digest) => this.#histories.has(digest)) + 1
    const digest = digests.at(-1)
    if (digest === undefined || shared === digests.length) return
    const before = this.#histories.get(digests[shared - 1] ?? '') ?? historyOf([])
    const added = JSON.parse(canonicalJson(messages.slice(shared))) as Message[]
    this.#histories.set(digest, withMessages(before, added, digests.slice(shared)))
  }

  /** Returns the messages that were kept under a digest. */
  messages(digest: string): readonly Message[] {
    return carriedMessages(this.#histories.get(digest) ?? historyOf([]))
  }
}
