import type { Tool } from '@modelcontextprotocol/client'
import {
  queueQuestions,
  type ConnectionEvents,
  openListedClient,
  type NamedServer,
  type OpenedClient,
  type SharedParts,
} from './client.ts'
import { type CallDeadline, startDeadline, pause, waitUnlessAborted, pauseAll } from './deadline.ts'
import { type Listing, readListing, compareListings } from './listing.ts'
import { isHttpServer } from './options.ts'
import { cleanText, withoutAnySecrets } from './secrets.ts'

const defaultStartMs = 30_000

/** `starting` and `reconnecting` become `ready` or `failed`; the next call makes `failed` `reconnecting`. */
export type ConnectionState = 'starting' | 'ready' | 'reconnecting' | 'failed' | 'closed'

const nothingListed: Listing = { tools: new Map(), faults: [] }
const closedText = 'the connections to MCP servers were closed'
/** How often a user is asked within one call. */
const maxElicitations = 10

/** The connection to one server, which is made again when it is lost. `start` makes the first attempt. */
export class McpConnection {
  readonly server: NamedServer
  /** Deadlines of calls in flight stand still while a hook answers a question. */
  readonly deadlines: Set<CallDeadline> = new Set()
  readonly #shared: SharedParts
  readonly #closing = new AbortController()
  /** Resolves when nothing is left of the connections that were lost. */
  #farewell: Promise<void> = Promise.resolve()
  #opened: OpenedClient | undefined
  #attempt: Promise<void> | undefined
  #state: ConnectionState = 'starting'
  #fault: string | undefined
  #listing: Listing = nothingListed
  /** Attempts and connections in a row without an answered call. */
  #losses = 0

  constructor(server: NamedServer, shared: SharedParts) {
    this.#shared = shared
    const { authorizationCallback } = isHttpServer(server.options) ? server.options : {}
    if (authorizationCallback === undefined) {
      this.server = server
      return
    }
    // The user may take any time for an authorization, as long as the connection is wanted.
    const { signal } = this.#closing
    const ask = async (): Promise<URLSearchParams> =>
      await authorizationCallback(Object.freeze({ server: server.name, signal }))
    const askUser = async (): Promise<URLSearchParams> => {
      const runAgain = pauseAll(this.deadlines)
      return await waitUnlessAborted(ask(), signal).finally(runAgain)
    }
    this.server = { ...server, askUser }
  }

  state(): ConnectionState {
    return this.#closing.signal.aborted ? 'closed' : this.#state
  }

  /** Why it is not ready, or what was wrong with its tools. No secrets, and nothing that a terminal obeys. */
  faults(): readonly string[] {
    return [...(this.#fault === undefined ? [] : [this.#fault]), ...this.#listing.faults]
  }

  /** The tools as the server listed them last. */
  listing(): Listing {
    return this.#listing
  }

  /** The client that is connected now. */
  current(): OpenedClient | undefined {
    return this.#opened
  }

  /** Resolves when the first attempt has ended, however it ended. */
  start(): Promise<void> {
    return this.#begin(() => this.#open())
  }

  /** Resolves with a connected client, after a new attempt if needed. Rejects with what keeps it from connecting. */
  async ready(signal: AbortSignal): Promise<OpenedClient> {
    if (this.#opened === undefined) {
      if (this.#attempt === undefined) {
        this.#losses = 0
        this.#state = 'reconnecting'
      }
      await waitUnlessAborted(this.start(), signal)
    }
    if (this.#opened === undefined) throw new Error(this.#fault)
    return this.#opened
  }

  /**
   * The server takes no other request of this client: a new one is made at once, unless that has happened. What the server
   * was asked before may still be answered.
   */
  replace(from: OpenedClient): void {
    this.#lose(from, 'once idle', async () => {
      this.#state = 'reconnecting'
      await this.#open()
      if (this.#opened === undefined) await this.#openAgain()
    })
  }

  /**
   * The client does not reach the server any more: another one is made after a wait, unless that has happened. What the server
   * was asked before may still be answered.
   */
  lost(from: OpenedClient): void {
    this.#lose(from, 'once idle')
  }

  /** A call was answered: the server works. */
  answered(): void {
    this.#losses = 0
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error(closedText))
    await this.#attempt?.catch(() => {})
    const last = this.#opened
    this.#opened = undefined
    this.#fault = closedText
    await last?.close().catch(() => {})
    await this.#farewell
  }

  #begin(work: () => Promise<void>): Promise<void> {
    return (this.#attempt ??= work().finally(() => (this.#attempt = undefined)))
  }

  async #open(): Promise<void> {
    const { server, deadlines } = this
    const { startMs = defaultStartMs } = server.options
    const time = startDeadline(this.#shared.timers, startMs, startMs)
    deadlines.add(time)
    const limits = { elicit: maxElicitations, sample: this.#shared.sampling.maxPerCall }
    const events: ConnectionEvents = {
      questions: queueQuestions(deadlines, limits),
      onTools: (from, tools) => {
        if (from === this.#opened) this.#take(tools)
      },
      onLost: (from) => this.#lose(from, 'now'),
      onQuestion: () => pauseAll(deadlines),
    }
    try {
      const signal = AbortSignal.any([this.#closing.signal, time.signal])
      const { opened, tools } = await openListedClient(server, this.#shared, events, signal)
      this.#opened = opened
      this.#state = 'ready'
      this.#fault = undefined
      this.#take(tools)
    } catch (error) {
      this.#losses++
      this.#state = 'failed'
      this.#fault = time.signal.aborted
        ? `it did not answer within ${startMs} ms (startMs says how long it may take)`
        : this.#clean(error instanceof Error ? error.message : String(error))
    } finally {
      time.stop()
      deadlines.delete(time)
    }
  }

  #lose(
    from: OpenedClient,
    close: 'now' | 'once idle',
    work: () => Promise<void> = () => this.#openAgain(),
  ): void {
    if (this.#opened !== from) return
    this.#opened = undefined
    this.#losses++
    this.#fault = `the connection was lost: ${this.#clean(from.whyLost())}`
    const closed = async (): Promise<void> => {
      if (close === 'once idle') await waitUnlessAborted(from.idle(), this.#closing.signal).catch(() => {})
      await from.close().catch(() => {})
    }
    const farewell = closed()
    this.#farewell = this.#farewell.then(() => farewell)
    void this.#begin(work)
  }

  async #openAgain(): Promise<void> {
    const { signal } = this.#closing
    const { timers, random, backoff } = this.#shared
    for (let tried = 0; this.#losses <= backoff.maxAttempts; tried++) {
      this.#state = 'reconnecting'
      const waitMs = Math.min(backoff.capMs, backoff.baseMs * 2 ** tried)
      // Many clients of a server that comes up again should not come all at once.
      await pause(Math.max(1, Math.round(waitMs * (0.75 + random() / 2))), timers, signal)
      if (signal.aborted) break
      await this.#open()
      if (this.#opened !== undefined) return
    }
    this.#state = 'failed'
  }

  #take(tools: readonly Tool[]): void {
    const { name, secrets } = this.server
    const before = this.#listing
    this.#listing = readListing(name, tools, secrets)
    const changes = before === nothingListed ? undefined : compareListings(name, before, this.#listing)
    if (changes) this.#shared.onChange(changes)
  }

  #clean(text: string): string {
    return cleanText(withoutAnySecrets(text, this.server.secrets), 3_000)
  }
}
