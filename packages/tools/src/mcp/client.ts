import { statSync } from 'node:fs'
import type { Client, ClientOptions, Tool } from '@modelcontextprotocol/client'
import { omitUndefined, estimateTextTokens, readCode, type OptionalPackage } from '@tallystick/core/internal'
import type { ReadTraceparent } from '../define/run-tool.ts'
import { toVisibleText } from '../define/text.ts'
import type { ProcessGuard, Timers } from '../host.ts'
import { declarePackage } from '../packages.ts'
import type { client } from './client-library.ts'
import { type CallDeadline, type ModelBudget, noTimeoutMs, waitUnlessAborted } from './deadline.ts'
import { boundFetch, renewDiscovery, watchStreams, withLostResponses } from './fetch.ts'
import { mendToolLists, type ToolChanges } from './listing.ts'
import {
  createChildEnvironment,
  type Environment,
  type HttpServer,
  isHttpServer,
  type McpHooks,
  type McpQuestion,
  type McpServer,
  toRootUri,
  type SampleAnswer,
  type SamplingLimits,
  type StdioServer,
} from './options.ts'
import { cleanText, type LearnedSecrets, withoutAnySecrets } from './secrets.ts'
import { type StdioTransport, createStdioTransport } from './server-process.ts'

/** The official client of the protocol. */
export const mcpPackage: OptionalPackage<typeof client> = declarePackage(
  '@modelcontextprotocol/client',
  () => import('@modelcontextprotocol/client'),
)

/** Shared by the connections of a manager. */
export interface SharedParts {
  readonly sdk: typeof client
  readonly hooks: McpHooks
  readonly sampling: SamplingLimits
  readonly traceparent: ReadTraceparent | undefined
  readonly timers: Timers
  readonly random: () => number
  readonly guard: ProcessGuard
  readonly environment: Environment
  /** Waits between attempts to reconnect. */
  readonly backoff: { readonly baseMs: number; readonly capMs: number; readonly maxAttempts: number }
  readonly onChange: (changes: ToolChanges) => void
}

/** One server of a configuration. */
export interface NamedServer {
  readonly name: string
  readonly options: McpServer
  readonly secrets: LearnedSecrets
  /** Resolves with what the redirect of OAuth came back with. Absent if the user gave no such function. */
  readonly askUser?: () => Promise<URLSearchParams>
}

export interface ConnectionEvents {
  readonly questions: AskedQuestions
  /** A hook begins to answer a question of the server. Returns what is called when it has answered. */
  readonly onQuestion: () => () => void
  /** The server's list of tools has changed, and this is all of it now. */
  readonly onTools: (from: OpenedClient, tools: readonly Tool[]) => void
  readonly onLost: (from: OpenedClient) => void
}

/** Connects to a server and reads its tools. Rejects with what went wrong; nothing is left of the attempt then. */
export async function openListedClient(
  server: NamedServer,
  shared: SharedParts,
  events: ConnectionEvents,
  signal: AbortSignal,
): Promise<{ readonly opened: OpenedClient; readonly tools: readonly Tool[] }> {
  const { options } = server
  for (let authorizations = 0; ; authorizations++) {
    let opened: OpenedClient | undefined
    let isLost = false
    const onTools = (tools: readonly Tool[]): void => {
      if (opened !== undefined) events.onTools(opened, tools)
    }
    const make: MakeClient = (era) => createClient(server, shared, events, onTools, era)
    const made = isHttpServer(options)
      ? await openHttp({ ...server, options }, make, shared, signal)
      : await openProcess({ ...server, options }, make, shared, signal)
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a client is not an event target
    made.client.onclose = () => {
      isLost = true
      events.onLost(made)
    }
    try {
      const { client } = made
      // All tools, of all pages; no tool of a server that does not have any.
      const { tools } = client.getServerCapabilities()?.tools
        ? await client.listTools(undefined, { signal, timeout: noTimeoutMs })
        : { tools: [] }
      if (isLost) throw new Error('the connection was lost')
      opened = made
      return { opened, tools }
    } catch (error) {
      const why = isLost ? new Error(made.whyLost(), { cause: error }) : error
      await made.close().catch(() => {})
      // Some servers take the handshake without a token, and want one for their tools.
      const isAsked = why instanceof shared.sdk.UnauthorizedError
      if (!isAsked || made.authorize === undefined || authorizations >= maxAuthorizations) throw why
      await made.authorize()
    }
  }
}

const defaultMaxMessageBytes = 10_000_000
/** How often a user is sent to an authorization page for one connection. */
const maxAuthorizations = 2
/** An answer to the question for the revision of the protocol is there at once, or the server does not know it. */
const probeMs = 5_000
/** How long the end of a session is waited for. */
const farewellMs = 1_000

/** A client that is connected. */
export interface OpenedClient {
  readonly client: client.Client
  readonly kind: 'stdio' | 'http' | 'sse'
  /** Returns how the connection was lost, if known. */
  readonly whyLost: () => string
  /**
   * Lets the server's demand for another authorization be met, in the way that the user gave. Absent if the user gave
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
    env: createChildEnvironment(environment, env, process.platform),
  }
  const transport = createStdioTransport(given, sdk, timers, guard)
  const client = makeClient()
  try {
    await connectClient(client, transport, sdk, signal)
  } catch (error) {
    const exit = transport.process.exit()
    await transport.close()
    throw new Error(explainNotStarted(given, error, exit) + describeStderr(transport, secrets), {
      cause: error,
    })
  }
  return {
    client,
    kind: 'stdio',
    whyLost: () => `its process ended (${transport.process.exit()})${describeStderr(transport, secrets)}`,
    close: () => transport.close(),
    // Requests to a process end with it.
    idle: () => Promise.resolve(),
  }
}

function explainNotStarted(
  { command, cwd }: Pick<StdioServer, 'command' | 'cwd'>,
  error: unknown,
  exit: string | undefined,
): string {
  const code = readCode(error)
  // The system says the same of a command that there is not.
  const isNowhere = cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory()
  if ((code === 'ENOENT' || code === 'ENOTDIR') && isNowhere)
    return `its cwd ${JSON.stringify(cwd)} is not a folder: make it, or give the path of one`
  if (code === 'ENOENT')
    return `its command ${JSON.stringify(command)} was not found: install it, or give its path`
  if (code === 'EACCES') return `its command ${JSON.stringify(command)} may not be executed`
  if (exit !== undefined) return `its process ended (${exit})`
  return error instanceof Error ? error.message : String(error)
}

function describeStderr(
  { process: { stderrTail } }: StdioTransport,
  secrets: NamedServer['secrets'],
): string {
  const lastWords = withoutAnySecrets(stderrTail.text(), secrets)
  return lastWords === '' ? '' : `. Its last words on standard error:\n${cleanText(lastWords, 2_000)}`
}

type NamedHttpServer = NamedServer & { readonly options: HttpServer }

/** Statuses of servers that do not know Streamable HTTP. */
const unknownTransport: ReadonlySet<number | undefined> = new Set([400, 404, 405])

async function openHttp(
  server: NamedHttpServer,
  makeClient: MakeClient,
  shared: SharedParts,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const { type } = server.options
  if (type !== 'sse') {
    try {
      return await connectHttp('http', server, makeClient, shared, signal)
    } catch (error) {
      const isUnknown = error instanceof shared.sdk.SdkHttpError && unknownTransport.has(error.status)
      if (type === 'http' || !isUnknown) throw error
    }
  }
  return await connectHttp('sse', server, makeClient, shared, signal)
}

/** Connects, and where the server sends the user to an authorization page, again with what comes back from there. */
async function connectHttp(
  kind: 'http' | 'sse',
  server: NamedHttpServer,
  makeClient: MakeClient,
  { sdk, timers }: SharedParts,
  signal: AbortSignal,
): Promise<OpenedClient> {
  const { askUser, options } = server
  for (let authorizations = 0; ; authorizations++) {
    const client = makeClient(kind === 'sse' ? 'legacy' : undefined)
    const httpOptions = createHttpOptions(server, () => {
      // A request that waits may still get its answer, and ends with its own stream.
      if (requests.size === 0) void client.close().catch(() => {})
    })
    const url = new URL(options.url)
    const transport =
      kind === 'sse'
        ? new sdk.SSEClientTransport(url, httpOptions)
        : new sdk.StreamableHTTPClientTransport(url, {
            ...httpOptions,
            reconnectionScheduler: (reopen, delayMs) => timers.schedule(delayMs, reopen),
          })
    const requests = withLostResponses(transport)
    const authorize = askUser && (async (): Promise<void> => await transport.finishAuth(await askUser()))
    try {
      await connectClient(client, transport, sdk, signal)
      requests.clear()
      let pending: Promise<void> | undefined
      return {
        client,
        kind,
        whyLost: () => (kind === 'sse' ? 'its stream of events ended' : 'its connection ended'),
        ...(authorize && {
          // Calls that are refused at the same time wait for one answer of the user.
          authorize: () => (pending ??= authorize().finally(() => (pending = undefined))),
        }),
        async close() {
          if ('terminateSession' in transport) {
            // The server may be gone.
            const late = new AbortController()
            const cancelTimer = timers.schedule(farewellMs, () => late.abort())
            await waitUnlessAborted(transport.terminateSession(), late.signal).catch(() => {})
            cancelTimer()
          }
          await client.close()
        },
        idle: () => requests.idle(),
      }
    } catch (error) {
      // The client closes its transport only once it knows the revision of the server.
      await Promise.allSettled([client.close(), transport.close()])
      const isAsked = error instanceof sdk.UnauthorizedError
      if (!isAsked || authorize === undefined || authorizations >= maxAuthorizations) throw error
      await authorize()
    }
  }
}

function createHttpOptions(
  { options, secrets }: NamedHttpServer,
  onGone: () => void,
): client.StreamableHTTPClientTransportOptions {
  const { headers, authProvider, maxMessageBytes = defaultMaxMessageBytes } = options
  const bounded = boundFetch(options.fetch ?? fetch, maxMessageBytes)
  const learning: client.FetchLike = (url, init) => {
    // Tokens change while a server runs: those sent to it must not come back.
    const [, token = ''] = new Headers(init?.headers).get('authorization')?.split(' ') ?? []
    secrets.learn(token)
    return bounded(url, init)
  }
  return {
    fetch: renewDiscovery(watchStreams(learning, options.url, onGone), options.url, authProvider),
    ...(headers !== undefined && { requestInit: { headers: { ...headers } } }),
    ...(authProvider !== undefined && { authProvider }),
  }
}

/**
 * Connects a client; rejects when the signal aborts, and the caller closes the transport. Does nothing if it has aborted
 * already.
 */
async function connectClient(
  made: client.Client,
  transport: client.Transport,
  sdk: typeof client,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted()
  mendToolLists(transport, sdk)
  // A stream of events that is closed before it names its endpoint would be waited for without an end.
  await waitUnlessAborted(made.connect(transport, { timeout: noTimeoutMs }), signal)
}

/** How the revision of the protocol is found out. */
export function readNegotiation(
  options: NamedServer['options'],
): NonNullable<client.ClientOptions['versionNegotiation']> {
  const era = options.era ?? (isHttpServer(options) && options.type !== 'sse' ? 'auto' : 'legacy')
  const mode = era === 'legacy' || era === 'auto' ? era : { pin: era }
  // A silent process is an older server; at a URL, silence is a missing answer, which is waited for up to startMs.
  return { mode, probe: { timeoutMs: isHttpServer(options) ? noTimeoutMs : probeMs } }
}

/** How often a server may ask within one call of a tool. */
export interface QuestionLimits {
  readonly elicit: number
  readonly sample: number
}

/** The questions of one server: in the order in which they came, one at a time, and only so many within a call. */
interface AskedQuestions {
  /** Has a question answered when those before it are. Rejects at once for one too many. */
  inTurn<Answer>(
    kind: keyof QuestionLimits,
    signal: AbortSignal,
    answer: (call: CallDeadline) => Promise<Answer>,
  ): Promise<Answer>
}

/**
 * Bounds what a server asks of the user and of a model: each answer costs money or patience, and the time of its call
 * stands still, so that nothing else would end it.
 */
export function queueQuestions(calls: ReadonlySet<CallDeadline>, limits: QuestionLimits): AskedQuestions {
  const asked = new WeakMap<CallDeadline, Record<keyof QuestionLimits, number>>()
  let last: Promise<unknown> = Promise.resolve()
  const take = (kind: keyof QuestionLimits): CallDeadline => {
    for (const call of calls) {
      const counts = asked.get(call) ?? { elicit: 0, sample: 0 }
      if (counts[kind] >= limits[kind]) continue
      asked.set(call, { ...counts, [kind]: counts[kind] + 1 })
      return call
    }
    const why = calls.size === 0 ? 'outside of a call' : `more than ${limits[kind]} times within a call`
    throw new Error(`This client is not asked ${why}.`)
  }
  return {
    async inTurn(kind, signal, answer) {
      const call = take(kind)
      const before = last
      const turn = before.then(() => {
        signal.throwIfAborted()
        return answer(call)
      })
      last = turn.catch(() => {})
      return await turn
    },
  }
}

const maxTextCharacters = 100_000

/**
 * A server's question as a person and a model may see it: its texts without what a terminal obeys and a reader does not see.
 * Throws for fields whose names hide something, and for addresses other than web pages, or with a user's name in them, which
 * would pass for the name of a host.
 */
function showValue(value: unknown, name: string): unknown {
  if (typeof value === 'string') {
    if (name === 'url') {
      const url = URL.parse(value)
      const isPage = url !== null && /^https?:$/.test(url.protocol)
      if (isPage && url.username === '' && url.password === '') return url.href
      throw new Error('The question is at an address that is not a web page.')
    }
    // The content of an image or a sound is not text.
    return name === 'data' || name === 'blob' ? value : cleanText(value, maxTextCharacters)
  }
  if (Array.isArray(value)) return value.map((each) => showValue(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([field, each]) => {
      if (toVisibleText(field) !== field)
        throw new Error('The question has a field whose name has invisible characters.')
      return [field, showValue(each, field)]
    }),
  )
}

/** Nothing is compiled from what a server says: its answers are read with bounds of our own. */
const trustingValidator: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: () => (data) => ({ valid: true, data: data as never, errorMessage: undefined }),
}

/** Makes the client of a server, with the hooks that the user gave, and no other. */
function createClient(
  { name, options }: NamedServer,
  { sdk, hooks, sampling }: Pick<SharedParts, 'sdk' | 'hooks' | 'sampling'>,
  events: ConnectionEvents,
  onTools: (tools: readonly Tool[]) => void,
  era: 'legacy' | undefined,
): Client {
  const { elicit, sample } = hooks
  const roots = options.roots?.flatMap((root) => toRootUri(root) ?? [])
  const made = new sdk.Client(
    { name: 'tallystick', version: '0.1.0' },
    {
      versionNegotiation: era === undefined ? readNegotiation(options) : { mode: era },
      jsonSchemaValidator: trustingValidator,
      capabilities: {
        ...(elicit && { elicitation: { form: { applyDefaults: true }, url: {} } }),
        ...(sample && { sampling: {} }),
        ...(roots && { roots: {} }),
      },
      listChanged: { tools: { debounceMs: 50, onChanged: (_error, tools) => tools && onTools(tools) } },
    },
  )
  // A line without a message does not end the connection: servers print such lines.
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a client is not an event target
  made.onerror = () => {}
  const asked = <Request, Answer>(
    kind: 'elicit' | 'sample',
    request: Request,
    signal: AbortSignal,
    answer: (shown: Request, question: McpQuestion, call: CallDeadline) => Promise<Answer>,
  ): Promise<Answer> =>
    events.questions.inTurn(kind, signal, (call) =>
      answer(showValue(request, '') as Request, Object.freeze({ server: name, signal }), call),
    )
  if (elicit) {
    made.setRequestHandler('elicitation/create', (request, { mcpReq }) =>
      asked<client.ElicitRequestParams, client.ElicitResult>(
        'elicit',
        request.params,
        mcpReq.signal,
        (shown, question) => askHook(() => elicit(shown, question), events),
      ),
    )
  }
  if (roots) {
    made.setRequestHandler('roots/list', () => ({ roots: roots.map((uri) => ({ uri })) }))
  }
  if (sample) {
    made.setRequestHandler('sampling/createMessage', (request, { mcpReq }) =>
      asked<client.CreateMessageRequestParams, client.CreateMessageResult>(
        'sample',
        request.params,
        mcpReq.signal,
        (shown, question, { budget }) => {
          const ask = (maxTokens: number): Promise<SampleAnswer> =>
            askHook(() => sample({ ...shown, maxTokens }, question), events)
          return sampleWithin(
            budget,
            { ...shown, maxTokens: Math.min(shown.maxTokens, sampling.maxTokens) },
            ask,
          )
        },
      ),
    )
  }
  return made
}

/** Fewer output tokens than this are not worth a model call. */
const minSampleTokens = 16
const tokensOfImage = 1_600

/** Has a model asked within what the run's limits leave, and charges the run for the answer. */
async function sampleWithin(
  budget: ModelBudget | undefined,
  request: client.CreateMessageRequestParams,
  ask: (maxTokens: number) => Promise<SampleAnswer>,
): Promise<client.CreateMessageResult> {
  const left = budget?.left() ?? {}
  const inputTokens = estimateTokens([request.systemPrompt ?? '', request.messages])
  const room =
    'limit' in left ? 0 : Math.min(left.outputTokens ?? Infinity, (left.tokens ?? Infinity) - inputTokens)
  if ('limit' in left || room < minSampleTokens || inputTokens > (left.inputTokens ?? Infinity))
    throw new Error('The limits of this run leave too little for another model call.')
  const {
    usage,
    costUsd = left.costUsd,
    ...answer
  } = await ask(Math.min(request.maxTokens, Math.floor(room)))
  budget?.spend({
    model: { provider: 'mcp', api: 'sampling', modelId: answer.model },
    usage: { inputTokens, outputTokens: estimateTokens(answer.content), ...omitUndefined({ ...usage }) },
    ...omitUndefined({ costUsd }),
  })
  return answer
}

function estimateTokens(content: unknown): number {
  let images = 0
  const text = JSON.stringify(content, (name, value: unknown) => {
    if (name !== 'data') return value
    images++
    return ''
  })
  return estimateTextTokens(text) + images * tokensOfImage
}

async function askHook<Answer>(
  answer: () => Answer | Promise<Answer>,
  { onQuestion }: ConnectionEvents,
): Promise<Answer> {
  const onAnswer = onQuestion()
  try {
    return await answer()
  } catch {
    // Errors of a hook are for the application only: the server just learns that there is no answer.
    throw new Error('The user of this client did not answer.')
  } finally {
    onAnswer()
  }
}
