import { createHash, randomUUID } from 'node:crypto'
import type { RunId } from '@tallystick/core'
import { ChangeHints, isStorableName } from '@tallystick/core/store-kit'
import type { Client } from 'pg'
import { finalize, Observable } from 'rxjs'
import { createClient, loadPg } from './connections.ts'
import type { PostgresLedgerOptions } from './options.ts'
import type { TailMark } from './tail.ts'

interface ChangeSource {
  marks(runIds: readonly RunId[]): Promise<ReadonlyMap<string, string>>
  tailMark(): Promise<TailMark>
  tell(channel: string, payload: string): Promise<void>
}

/**
 * Hints that a run, or any, may have changed: at once for writes of this ledger; for writes of other processes by
 * notification, and by polling, since a notification may be lost. It listens and polls only while it has subscribers,
 * and never keeps a process alive.
 */
export class ChangeFeed {
  readonly #hints = new ChangeHints()
  readonly #source: ChangeSource
  readonly #listener: ChangeListener | undefined
  readonly #notifier: ChangeNotifier
  readonly #pollIntervalMs: number
  /** How many listen to a run, and how it stood when it was last looked at. */
  readonly #followed = new Map<RunId, { listeners: number; mark: string | undefined }>()
  readonly #tailPoller: TailPoller
  #followers = 0
  #timer: NodeJS.Timeout | undefined
  #isPolling = false
  #isClosed = false

  constructor(source: ChangeSource, options: PostgresLedgerOptions, schema: string) {
    const { pooled = false, pollIntervalMs = pooled ? 250 : 1_000 } = options
    const channel = nameChannel(schema)
    this.#source = source
    this.#pollIntervalMs = pollIntervalMs
    const own = randomUUID()
    this.#notifier = new ChangeNotifier(own, (payload) => source.tell(channel, payload))
    const readMark = (): Promise<TailMark> => {
      void this.#listener?.listen()
      return source.tailMark()
    }
    this.#tailPoller = new TailPoller(readMark, pollIntervalMs, () => this.#hints.notifyFollowersOfAny())
    if (!pooled) {
      this.#listener = new ChangeListener(options, channel, ({ from, runIds }) => {
        // This ledger has sent the hints for its own writes already.
        if (from === own) return
        for (const runId of runIds) this.#hints.notify(runId, true)
        if (runIds.length === 0) this.#hints.notifyAll()
      })
    }
  }

  /** Call it after this ledger wrote to a run; `isInbox`: its inbox may have changed. */
  notify(runId: RunId, isInbox: boolean = true): void {
    this.#hints.notify(runId, isInbox)
    if (!this.#isClosed) this.#notifier.notify(runId)
  }

  /** Hints about every run. */
  ofAll(): Observable<void> {
    return new Observable((subscriber) => {
      this.#followers++
      if (!this.#isClosed) this.#tailPoller.begin()
      const leave = (): void => {
        if (--this.#followers > 0) return
        this.#tailPoller.stop()
        this.#stopIdle()
      }
      return this.#hints.of(undefined).pipe(finalize(leave)).subscribe(subscriber)
    })
  }

  /** Call it after a tail ended before committed events. */
  pollSoon(): void {
    this.#tailPoller.soon()
  }

  /** Hints about a run; with `inbox`, only those that may concern its inbox. */
  of(runId: RunId, part?: 'inbox'): Observable<void> {
    return new Observable((subscriber) => {
      this.#arrive(runId)
      return this.#hints
        .of(runId, part)
        .pipe(finalize(() => this.#leave(runId)))
        .subscribe(subscriber)
    })
  }

  /** Closes its connection, after sending its pending notifications. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#tailPoller.stop()
    this.#followed.clear()
    this.#followers = 0
    this.#stopIdle()
    this.#hints.close()
    await Promise.all([this.#notifier.flush(), this.#listener?.leave()])
  }

  #arrive(runId: RunId): void {
    const followed = this.#followed.get(runId)
    if (followed) {
      followed.listeners++
      return
    }
    this.#followed.set(runId, { listeners: 1, mark: undefined })
    if (this.#isClosed || !isStorableName(runId)) return
    this.#timer ??= setInterval(() => this.#poll(), this.#pollIntervalMs).unref()
    this.#poll()
  }

  #leave(runId: RunId): void {
    const followed = this.#followed.get(runId)
    if (followed === undefined || --followed.listeners > 0) return
    this.#followed.delete(runId)
    this.#stopIdle()
  }

  /** Stops polling without subscribers. */
  #stopIdle(): void {
    if (this.#followed.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.#followers === 0) void this.#listener?.leave()
  }

  /** If the database cannot be reached, the next poll may succeed; until then a reader gets the error. */
  #poll(): void {
    void this.#listener?.listen()
    if (this.#isPolling) return
    this.#isPolling = true
    const runIds = [...this.#followed.keys()].filter(isStorableName)
    this.#source.marks(runIds).then(
      (marks) => {
        this.#isPolling = false
        this.#compare(runIds, marks)
        if (this.#timer && this.#hasUnseen()) this.#poll()
      },
      () => {
        this.#isPolling = false
      },
    )
  }

  /** A subscriber joined while the database was asked about the others. */
  #hasUnseen(): boolean {
    return [...this.#followed].some(([runId, { mark }]) => mark === undefined && isStorableName(runId))
  }

  /** A run that is looked at for the first time may have changed since its listener came, so that is a hint too. */
  #compare(runIds: readonly RunId[], marks: ReadonlyMap<string, string>): void {
    for (const runId of runIds) {
      const followed = this.#followed.get(runId)
      const mark = marks.get(runId) ?? 'none'
      if (followed === undefined || followed.mark === mark) continue
      followed.mark = mark
      this.#hints.notify(runId, true)
    }
  }
}

/**
 * The channel on which processes tell each other what they wrote. Postgres truncates long names, so the schema is in it as a
 * digest.
 */
export function nameChannel(schema: string): string {
  return `tallystick_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

/** Postgres takes payloads of fewer bytes than 8000. */
const maxPayloadBytes = 7_900

/** A message from one ledger to the others. */
interface Word {
  /** The sender: one ledger of one process. */
  readonly from: string
  /** The runs that changed; none if they are too many to name. */
  readonly runIds: readonly RunId[]
}

/** A word as a payload. */
export function encodeWord({ from, runIds }: Word): string {
  const payload = JSON.stringify([from, ...runIds])
  return Buffer.byteLength(payload) <= maxPayloadBytes ? payload : JSON.stringify([from])
}

/** Parses a payload; one that cannot be parsed says that anything may have changed. */
export function decodeWord(payload: string): Word {
  try {
    const parsed: unknown = JSON.parse(payload)
    const [from, ...runIds] = Array.isArray(parsed) ? (parsed as readonly unknown[]) : []
    if (typeof from === 'string') return { from, runIds: runIds as readonly RunId[] }
  } catch {
    // Any client of the database may write to a channel.
  }
  return { from: '', runIds: [] }
}

/** Stands for a connection while the driver is loaded. */
const opening: unique symbol = Symbol('opening')

/** One connection that receives notifications of changes by other processes. It does not keep a process alive. */
class ChangeListener {
  readonly #options: PostgresLedgerOptions
  readonly #channel: string
  readonly #onChange: (word: Word) => void
  #client: Client | typeof opening | undefined

  constructor(options: PostgresLedgerOptions, channel: string, onChange: (word: Word) => void) {
    this.#options = options
    this.#channel = channel
    this.#onChange = onChange
  }

  /** Listens, if it does not yet. Ignores failures: the caller polls as well, and calls again. */
  async listen(): Promise<void> {
    if (this.#client !== undefined) return
    this.#client = opening
    const pg = await loadPg().catch(() => undefined)
    // It was left while the driver was loaded, or asked to listen once more.
    if (this.#client !== opening) return
    const client = pg && createClient(this.#options, pg)
    this.#client = client
    if (client === undefined) return
    const drop = (): void => {
      if (this.#client === client) this.#client = undefined
    }
    client.on('error', drop)
    client.on('end', drop)
    client.on('notification', ({ payload = '' }) => this.#onChange(decodeWord(payload)))
    try {
      await client.connect()
      releaseFromLoop(client)
      await client.query(`listen ${this.#channel}`)
    } catch {
      drop()
      await client.end().catch(() => undefined)
      return
    }
    // It got no notification of changes before it listened.
    if (this.#client === client) this.#onChange({ from: '', runIds: [] })
    else await client.end().catch(() => undefined)
  }

  /** Releases the connection. It may listen again later. */
  async leave(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client !== opening) await client?.end().catch(() => undefined)
  }
}

/** Lets the process end while the connection is open. The types of pg lack this method. */
function releaseFromLoop(client: Client & { unref?(): void }): void {
  client.unref?.()
}

/** Notifications that Postgres would send one by one make commits wait for each other, so there is one for many. */
const gapMs = 25

/** Tells other processes which runs have changed: at once after a pause, and then no more often than every 25 ms. */
export class ChangeNotifier {
  readonly #from: string
  readonly #send: (payload: string) => Promise<unknown>
  readonly #changed = new Set<RunId>()
  #isSending = false

  /** `from` is what it signs with. */
  constructor(from: string, send: (payload: string) => Promise<unknown>) {
    this.#from = from
    this.#send = send
  }

  notify(runId: RunId): void {
    this.#changed.add(runId)
    if (!this.#isSending) void this.#sendAll()
  }

  /** Sends the hints that are left. */
  async flush(): Promise<void> {
    await this.#sendChanged()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    while (this.#changed.size > 0) {
      await this.#sendChanged()
      await new Promise<void>((resolve) => void setTimeout(resolve, gapMs).unref())
    }
    this.#isSending = false
  }

  async #sendChanged(): Promise<void> {
    if (this.#changed.size === 0) return
    const payload = encodeWord({ from: this.#from, runIds: [...this.#changed] })
    this.#changed.clear()
    // Polling makes up for a lost hint.
    await this.#send(payload).catch(() => undefined)
  }
}

/** How soon it is looked again for events that wait; then twice as late, and so on. */
const soonMs = 25

/**
 * Polls whether a tail can continue: from time to time, and soon while events wait, since Postgres sends no
 * notification when the transactions end that they wait for. Never keeps a process alive.
 */
export class TailPoller {
  readonly #readMark: () => Promise<TailMark>
  readonly #pollIntervalMs: number
  readonly #changed: () => void
  #timer: NodeJS.Timeout | undefined
  #isOn = false
  #isPolling = false
  #isWanted = false
  #soonMs: number = soonMs
  #mark: string | undefined

  /** `changed` is called at the first look and whenever the mark differs; failed looks are ignored. */
  constructor(readMark: () => Promise<TailMark>, pollIntervalMs: number, changed: () => void) {
    this.#readMark = readMark
    this.#pollIntervalMs = pollIntervalMs
    this.#changed = changed
  }

  begin(): void {
    if (this.#isOn) return
    this.#isOn = true
    this.#mark = undefined
    if (!this.#isPolling) void this.#pollNow()
  }

  stop(): void {
    this.#isOn = false
    clearTimeout(this.#timer)
  }

  /** Call it after a tail ended before committed events. */
  soon(): void {
    if (this.#isPolling) this.#isWanted = true
    else if (this.#isOn) this.#pollIn(this.#soonMs)
  }

  #pollIn(delayMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#pollNow(), Math.min(delayMs, this.#pollIntervalMs)).unref()
  }

  async #pollNow(): Promise<void> {
    clearTimeout(this.#timer)
    this.#isPolling = true
    const found = await this.#readMark().catch(() => undefined)
    this.#isPolling = false
    if (!this.#isOn) return
    const isNew = found !== undefined && found.mark !== this.#mark
    const isHeldBack = this.#isWanted || (found?.isHeldBack ?? false)
    this.#isWanted = false
    this.#soonMs = isNew || !isHeldBack ? soonMs : Math.min(2 * this.#soonMs, this.#pollIntervalMs)
    this.#pollIn(isHeldBack ? this.#soonMs : this.#pollIntervalMs)
    if (!isNew) return
    this.#mark = found.mark
    this.#changed()
  }
}
