import { statSync } from 'node:fs'
import type { client } from '../options/client-library.ts'
import { withoutAnySecrets } from '../listing/result-content.ts'
import { type HttpServer, isHttpServer, type StdioServer } from '../options/server-options.ts'
import { cleanText } from '../text/clean-text.ts'
import { boundedFetch } from '../transport/bounded-fetch.ts'
import { childEnvironment } from '../options/child-environment.ts'
import { mendToolLists } from '../transport/sound-lists.ts'
import { renewedDiscovery } from '../transport/renewed-discovery.ts'
import { watchingStreams } from '../transport/reopened-stream.ts'
import { type StdioTransport, stdioTransport } from '../transport/stdio-transport.ts'
import { withLostResponses } from './lost-response.ts'
import type { NamedServer, SharedParts } from './shared-parts.ts'
import { noTimeoutMs, resultOrAborted } from './waiting.ts'

const defaultMaxMessageBytes = 10_000_000
/** How often a user is sent to an authorization page for one connection. */
const maxAuthorizations = 2
/** An answer to the question for the revision of the protocol is there at once, or the server does not know it. */
const probeMs = 5_000
const farewellMs = 1_000

/** A client that is connected. */
export interface OpenedClient {
  readonly client: client.Client
  readonly kind: 'stdio' | 'http' | 'sse'
  /** Says how the connection was lost, as far as that is known. */
  readonly whyLost: () => string
  /**
   * Lets the server's demand for another authorization be met, in the way that the user gave. Absent where the user gave
   * none.
   */
  readonly authorize?: () => Promise<void>
  /** Closes the connection; resolves when nothing of it is left. */
  close(): Promise<void>
  /** Resolves when no request waits for its answer. */
  idle(): Promise<void>
}

/** Makes a client that is not connected yet; `legacy` where the transport is older than the new revision. */
export type MakeClient = (era?: 'legacy') => client.Client

/** Connects to a server. Rejects with an error whose text names what went wrong; nothing is left of the attempt then. */
export async function openClient(
  server: NamedServer,
  makeClient: MakeClient,
  shared: SharedParts,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const { options } = server
  return isHttpServer(options)
    ? await openHttp({ ...server, options }, makeClient, shared, signal)
    : await openProcess({ ...server, options }, makeClient, shared, signal)
}

async function openProcess(
  { options, secrets }: NamedServer & { readonly options: StdioServer },
  makeClient: MakeClient,
  { sdk, timers, guard, environment }: SharedParts,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const { command, args = [], env = {}, cwd, maxMessageBytes = defaultMaxMessageBytes } = options
  const given = {
    command,
    args,
    cwd,
    maxMessageBytes,
    platform: process.platform,
    env: childEnvironment(environment, env, process.platform),
  }
  const transport = stdioTransport(given, { sdk, timers, guard })
  const client = makeClient()
  try {
    await connected(client, transport, { sdk, signal })
  } catch (error) {
    const exit = transport.process.exit()
    await transport.close()
    throw new Error(whyNotStarted(given, error, exit) + stderrText(transport, secrets), { cause: error })
  }
  return {
    client,
    kind: 'stdio',
    whyLost: () => `its process ended (${transport.process.exit()})${stderrText(transport, secrets)}`,
    close: () => transport.close(),
    // What a process was asked ends with it.
    idle: () => Promise.resolve(),
  }
}

function whyNotStarted(
  { command, cwd }: Pick<StdioServer, 'command' | 'cwd'>,
  error: unknown,
  exit: string | undefined,
): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // The system says the same of a command that there is not.
  const isNowhere = cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()
  if ((code === 'ENOENT' || code === 'ENOTDIR') && isNowhere)
    return `its cwd ${JSON.stringify(cwd)} is no folder: make it, or give the path of one`
  if (code === 'ENOENT')
    return `its command ${JSON.stringify(command)} was not found: install it, or give its path`
  if (code === 'EACCES') return `its command ${JSON.stringify(command)} may not be executed`
  if (exit !== undefined) return `its process ended (${exit})`
  return error instanceof Error ? error.message : String(error)
}

function stderrText({ process: { stderrTail } }: StdioTransport, secrets: NamedServer['secrets']): string {
  const lastWords = withoutAnySecrets(stderrTail.text(), secrets)
  return lastWords === '' ? '' : `. Its last words on standard error:\n${cleanText(lastWords, 2_000)}`
}

type NamedHttpServer = NamedServer & { readonly options: HttpServer }

async function openHttp(
  server: NamedHttpServer,
  makeClient: MakeClient,
  { sdk, timers }: SharedParts,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const { type } = server.options
  if (type === 'sse') return await openSse(server, makeClient, sdk, signal)
  try {
    return await openStreamable(server, makeClient, { sdk, timers }, signal)
  } catch (error) {
    if (type === 'http' || !isUnknownTransport(error, sdk)) throw error
    return await openSse(server, makeClient, sdk, signal)
  }
}

/** What servers answer that do not know Streamable HTTP. */
const unknownTransport: ReadonlySet<number | undefined> = new Set([400, 404, 405])

/** Whether a server does not know Streamable HTTP. Any other failure would fail the older way as well, or hide itself. */
function isUnknownTransport(error: unknown, sdk: typeof client): boolean {
  return error instanceof sdk.SdkHttpError && unknownTransport.has(error.status)
}

async function openStreamable(
  server: NamedHttpServer,
  makeClient: MakeClient,
  { sdk, timers }: Pick<SharedParts, 'sdk' | 'timers'>,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const makeTransport = (onGone: () => void): client.StreamableHTTPClientTransport =>
    new sdk.StreamableHTTPClientTransport(new URL(server.options.url), {
      ...httpOptions(server, onGone),
      reconnectionScheduler: (reopen, delayMs) => timers.schedule(delayMs, reopen),
    })
  const { client, transport, idle } = await authorized(server, makeClient, { makeTransport, sdk }, signal)
  return {
    client,
    kind: 'http',
    whyLost: () => 'its connection ended',
    ...authorizing(transport, server),
    async close() {
      await farewell(transport, timers)
      await client.close()
    },
    idle,
  }
}

/** Ends the session at the server, which is waited for at most a second: it may be gone. */
async function farewell(
  transport: client.StreamableHTTPClientTransport,
  timers: SharedParts['timers'],
): Promise<void> {
  let cancel = (): void => {}
  const late = new Promise<void>((resolve) => (cancel = timers.schedule(farewellMs, resolve)))
  await Promise.race([transport.terminateSession().catch(() => {}), late])
  cancel()
}

async function openSse(
  server: NamedHttpServer,
  makeClient: MakeClient,
  sdk: typeof client,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const makeTransport = (onGone: () => void): client.SSEClientTransport =>
    new sdk.SSEClientTransport(new URL(server.options.url), httpOptions(server, onGone))
  const { client, transport, idle } = await authorized(
    server,
    () => makeClient('legacy'),
    { makeTransport, sdk },
    signal,
  )
  return {
    client,
    kind: 'sse',
    whyLost: () => 'its stream of events ended',
    ...authorizing(transport, server),
    close: () => client.close(),
    idle,
  }
}

function httpOptions(
  { options, secrets }: NamedHttpServer,
  onGone: () => void,
): client.StreamableHTTPClientTransportOptions {
  const { headers, authProvider, maxMessageBytes = defaultMaxMessageBytes } = options
  const bounded = boundedFetch(options.fetch ?? fetch, maxMessageBytes)
  const learning: client.FetchLike = (url, init) => {
    // Tokens come and go while a server runs: what it is sent is what must not come back.
    const [, token = ''] = new Headers(init?.headers).get('authorization')?.split(' ') ?? []
    secrets.learn(token)
    return bounded(url, init)
  }
  return {
    fetch: renewedDiscovery(watchingStreams(learning, options.url, onGone), options.url, authProvider),
    ...(headers !== undefined && { requestInit: { headers: { ...headers } } }),
    ...(authProvider !== undefined && { authProvider }),
  }
}

function authorizing(
  transport: AuthorizedTransport,
  { askUser }: NamedServer,
): Pick<OpenedClient, 'authorize'> {
  if (askUser === undefined) return {}
  let pending: Promise<void> | undefined
  const finish = async (): Promise<void> => await transport.finishAuth(await askUser())
  // Calls that are refused at the same time wait for one answer of the user.
  return { authorize: () => (pending ??= finish().finally(() => (pending = undefined))) }
}

type AuthorizedTransport = client.StreamableHTTPClientTransport | client.SSEClientTransport

interface AuthorizedClient<T> extends Pick<OpenedClient, 'client' | 'idle'> {
  readonly transport: T
}

/** Connects, and where the server sends the user to an authorization page, again with what comes back from there. */
async function authorized<T extends AuthorizedTransport>(
  { askUser }: NamedServer,
  makeClient: MakeClient,
  { makeTransport, sdk }: { readonly makeTransport: (onGone: () => void) => T; readonly sdk: typeof client },
  signal: AbortSignal,
): Promise<AuthorizedClient<T>> {
  for (let authorizations = 0; ; authorizations++) {
    const client = makeClient()
    const transport = makeTransport(() => {
      // A request that waits may still get its answer, and ends with its own stream.
      if (requests.size === 0) void client.close().catch(() => {})
    })
    const requests = withLostResponses(transport)
    try {
      await connected(client, transport, { sdk, signal })
      requests.clear()
      return { client, transport, idle: () => requests.idle() }
    } catch (error) {
      // The client closes its transport only where it has found out the revision of the server.
      await Promise.allSettled([client.close(), transport.close()])
      const isAsked = error instanceof sdk.UnauthorizedError
      if (!isAsked || askUser === undefined || authorizations >= maxAuthorizations) throw error
      await transport.finishAuth(await askUser())
    }
  }
}

/**
 * Connects a client; rejects when the signal aborts, and the caller closes the transport. Nothing begins where it has aborted.
 */
async function connected(
  made: client.Client,
  transport: client.Transport,
  { sdk, signal }: { readonly sdk: typeof client; readonly signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted()
  mendToolLists(transport, sdk)
  // A stream of events that is closed before it names its endpoint would be waited for without an end.
  await resultOrAborted(made.connect(transport, { timeout: noTimeoutMs }), signal)
}

/** How the revision of the protocol is found out. */
export function negotiation(
  options: NamedServer['options'],
): NonNullable<client.ClientOptions['versionNegotiation']> {
  const era = options.era ?? (isHttpServer(options) && options.type !== 'sse' ? 'auto' : 'legacy')
  const mode = era === 'legacy' || era === 'auto' ? era : { pin: era }
  // A process that is silent is an older server; at a URL silence is no answer, and startMs says how long it is waited for.
  return { mode, probe: { timeoutMs: isHttpServer(options) ? noTimeoutMs : probeMs } }
}
