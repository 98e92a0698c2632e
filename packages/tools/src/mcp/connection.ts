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
import { withoutAnySecrets } from './result.ts'
import { cleanText } from './secrets.ts'

const defaultStartMs = 30_000

/** `starting` and `reconnecting` become `ready` or `failed`; the next call makes `failed` `reconnecting`. */
export type ConnectionState = 'starting' | 'ready' | 'reconnecting' | 'failed' | 'closed'

/** The connection to one server, which is made again when it is lost. */
export interface McpConnection {
  readonly server: NamedServer
  readonly state: () => ConnectionState
  /** Why it is not ready, or what was wrong with its tools. No secrets, and nothing that a terminal obeys. */
  readonly faults: () => readonly string[]
  /** The tools as the server listed them last. */
  readonly listing: () => Listing
  /** The client that is connected now. */
  readonly current: () => OpenedClient | undefined
  /** Resolves when the first attempt has ended, however it ended. */
  start(): Promise<void>
  /** Resolves with a connected client, after a new attempt where it has to be. Rejects with what keeps it from connecting. */
  ready(signal: AbortSignal): Promise<OpenedClient>
  /**
   * The server takes no other request of this client: a new one is made at once, unless that has happened. What the server
   * was asked before may still be answered.
   */
  replace(lost: OpenedClient): void
  /**
   * The client does not reach the server any more: another one is made after a wait, unless that has happened. What the server
   * was asked before may still be answered.
   */
  lost(client: OpenedClient): void
  /** A call was answered: the server works. */
  answered(): void
  /** Deadlines of calls in flight stand still while a hook answers a question. */
  readonly deadlines: Set<CallDeadline>
  close(): Promise<void>
}

const nothingListed: Listing = { tools: new Map(), faults: [] }

interface Held {
  readonly server: NamedServer
  readonly shared: SharedParts
  readonly closing: AbortController
  readonly deadlines: Set<CallDeadline>
  /** Resolves when nothing is left of the connections that were lost. */
  farewell: Promise<void>
  opened: OpenedClient | undefined
  attempt: Promise<void> | undefined
  state: ConnectionState
  fault: string | undefined
  listing: Listing
  /** Attempts and connections in a row without an answered call. */
  losses: number
}

/** Prepares the connection to a server; `start` makes the first attempt. */
export function createConnection(server: NamedServer, shared: SharedParts): McpConnection {
  const closing = new AbortController()
  const deadlines = new Set<CallDeadline>()
  const held: Held = {
    server: { ...server, ...createAskUser(server, deadlines, closing.signal) },
    shared,
    closing,
    deadlines,
    farewell: Promise.resolve(),
    opened: undefined,
    attempt: undefined,
    state: 'starting',
    fault: undefined,
    listing: nothingListed,
    losses: 0,
  }
  return {
    server,
    deadlines: held.deadlines,
    state: () => (held.closing.signal.aborted ? 'closed' : held.state),
    faults: () => [...(held.fault === undefined ? [] : [held.fault]), ...held.listing.faults],
    listing: () => held.listing,
    current: () => held.opened,
    start: () => begin(held, open),
    ready: (signal) => waitForClient(held, signal),
    replace: (from) => lose(held, from, openNow, closeOnceIdle),
    lost: (from) => lose(held, from, openAgain, closeOnceIdle),
    answered() {
      held.losses = 0
    },
    async close() {
      held.closing.abort(new Error(closedText))
      await held.attempt?.catch(() => {})
      const last = held.opened
      held.opened = undefined
      held.fault = closedText
      await last?.close().catch(() => {})
      await held.farewell
    },
  }
}

/** Asks the user for an authorization, who may take any time for it, as long as the connection is wanted. */
function createAskUser(
  { name, options }: NamedServer,
  deadlines: ReadonlySet<CallDeadline>,
  closing: AbortSignal,
): Pick<NamedServer, 'askUser'> {
  const { authorizationCallback } = isHttpServer(options) ? options : {}
  if (authorizationCallback === undefined) return {}
  return {
    askUser: async () => {
      const runAgain = pauseAll(deadlines)
      const question = Object.freeze({ server: name, signal: closing })
      const asked = async (): Promise<URLSearchParams> => await authorizationCallback(question)
      return await waitUnlessAborted(asked(), closing).finally(runAgain)
    },
  }
}

const closedText = 'the connections to MCP servers were closed'

function begin(held: Held, work: (held: Held) => Promise<void>): Promise<void> {
  return (held.attempt ??= work(held).finally(() => (held.attempt = undefined)))
}

async function waitForClient(held: Held, signal: AbortSignal): Promise<OpenedClient> {
  if (held.opened === undefined) {
    if (held.attempt === undefined) {
      held.losses = 0
      held.state = 'reconnecting'
    }
    await waitUnlessAborted(begin(held, open), signal)
  }
  if (held.opened === undefined) throw new Error(held.fault)
  return held.opened
}

/** How often a user is asked within one call. */
const maxElicitations = 10

async function open(held: Held): Promise<void> {
  const { server, shared, closing, deadlines } = held
  const startMs = server.options.startMs ?? defaultStartMs
  const time = startDeadline(shared.timers, startMs, startMs)
  deadlines.add(time)
  const limits = { elicit: maxElicitations, sample: shared.sampling.maxPerCall }
  const events: ConnectionEvents = {
    questions: queueQuestions(deadlines, limits),
    onTools: (from, tools) => {
      if (from === held.opened) take(held, tools)
    },
    onLost: (from) => lose(held, from),
    onQuestion: () => pauseAll(deadlines),
  }
  try {
    const signal = AbortSignal.any([closing.signal, time.signal])
    const { opened, tools } = await openListedClient(server, shared, events, signal)
    held.opened = opened
    held.state = 'ready'
    held.fault = undefined
    take(held, tools)
  } catch (error) {
    held.losses++
    held.state = 'failed'
    held.fault = time.signal.aborted
      ? `it did not answer within ${startMs} ms (startMs says how long it may take)`
      : describeFault(held, error)
  } finally {
    time.stop()
    deadlines.delete(time)
  }
}

function lose(
  held: Held,
  from: OpenedClient,
  work = openAgain,
  end: typeof closeOnceIdle = (client) => client.close(),
): void {
  if (held.opened !== from) return
  held.opened = undefined
  held.losses++
  held.fault = `the connection was lost: ${describeFault(held, new Error(from.whyLost()))}`
  const farewell = end(from, held.closing.signal).catch(() => {})
  held.farewell = held.farewell.then(() => farewell)
  void begin(held, work)
}

/** Closes a client when it has the answers that it waits for, or when the signal aborts. */
async function closeOnceIdle(client: OpenedClient, signal: AbortSignal): Promise<void> {
  await waitUnlessAborted(client.idle(), signal).catch(() => {})
  await client.close()
}

/** Tries at once: the server is there, and only the connection cannot be used any more. */
async function openNow(held: Held): Promise<void> {
  held.state = 'reconnecting'
  await open(held)
  if (held.opened === undefined) await openAgain(held)
}

async function openAgain(held: Held): Promise<void> {
  const { closing } = held
  const { timers, random, backoff } = held.shared
  for (let tried = 0; held.losses <= backoff.maxAttempts; tried++) {
    held.state = 'reconnecting'
    const waitMs = Math.min(backoff.capMs, backoff.baseMs * 2 ** tried)
    // Many clients of a server that comes up again should not come all at once.
    await pause(Math.max(1, Math.round(waitMs * (0.75 + random() / 2))), timers, closing.signal)
    if (closing.signal.aborted) break
    await open(held)
    if (held.opened !== undefined) return
  }
  held.state = 'failed'
}

function take(held: Held, tools: readonly Tool[]): void {
  const before = held.listing
  held.listing = readListing(held.server.name, tools, held.server.secrets)
  const changes =
    before === nothingListed ? undefined : compareListings(held.server.name, before, held.listing)
  if (changes) held.shared.onChange(changes)
}

function describeFault({ server }: Held, error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return cleanText(withoutAnySecrets(text, server.secrets), 3_000)
}
