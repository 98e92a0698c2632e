import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type * as node from '@modelcontextprotocol/node'
import type * as sdk from '@modelcontextprotocol/server'
import type {
  CallToolRequest,
  CallToolResult,
  ContentBlock,
  Server,
  ServerContext,
} from '@modelcontextprotocol/server'
import {
  type AgentTool,
  type Clock,
  ConfigurationError,
  type Run,
  type RunResult,
  type Runtime,
  type Tool,
} from '@tallystick/core'
import {
  AttemptTime,
  isAgentTool,
  isSameSecret,
  findNearestNames,
  omitUndefined,
  option,
  type Schema,
  findParsedFault,
  requireOptions,
  type OptionalPackage,
} from '@tallystick/core/internal'
import {
  type Json,
  type JsonObject,
  parseRunId,
  type ResultPart,
  deriveToolCallId,
  type ToolRun,
  type ToolSignal,
} from '@tallystick/core/vocabulary'
import { filter, Observable, ReplaySubject } from 'rxjs'
import { toJson } from '../define/content.ts'
import { createTextEnding, type Ending, endThrown } from '../define/outcome.ts'
import { createHttpServer, hostTimers, type Timers } from '../host.ts'
import { declarePackage } from '../packages.ts'

/** How tools are served. */
export interface ServeMcpOptions {
  /** The name that clients see. Default `tallystick`. */
  readonly name?: string | undefined
  /** Default `1.0.0`. */
  readonly version?: string | undefined
  /** For the model of the client: what the tools are about. */
  readonly instructions?: string | undefined
  /** Serves over HTTP instead of the standard input and output of this process. */
  readonly http?: ServeHttpOptions | undefined
  /** Runs the agents among the tools (`agentTool`): each call is a run in its ledger. */
  readonly runtime?: Runtime | undefined
  /** Decides about calls that need an approval. Default: they are refused. */
  readonly approve?: ((call: ServedCall) => boolean | Promise<boolean>) | undefined
  /** The context of the calls. */
  readonly context?: unknown
  /** The clock that `timeoutMs` of tools is measured by. Default: the host's. */
  readonly timers?: Pick<Clock, 'schedule'> | undefined
}

/** Where an HTTP server listens. */
export interface ServeHttpOptions {
  /** Default 0: a port that is free. */
  readonly port?: number | undefined
  /** Default `127.0.0.1`. Another one needs a `token`. */
  readonly host?: string | undefined
  /** Clients have to send it as `authorization: Bearer …`. At least 16 characters. */
  readonly token?: string | undefined
}

const { anyFunction, anyObject, fields, filledText, listOf, maybe, valueThat } = option

const serveOptions: Schema = fields<ServeMcpOptions>(
  {
    name: maybe(filledText),
    version: maybe(filledText),
    instructions: maybe(filledText),
    http: maybe(
      fields<ServeHttpOptions>({
        port: maybe(
          valueThat(
            'a port from 1 to 65535, or 0 for a free one',
            (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
          ),
        ),
        host: maybe(filledText),
        token: maybe(
          valueThat(
            'a text of at least 16 characters',
            (value) => typeof value === 'string' && value.length >= 16,
          ),
        ),
      }),
    ),
    runtime: maybe(anyObject),
    approve: maybe(anyFunction),
    context: maybe(valueThat('anything', () => true)),
    timers: maybe(anyObject),
  },
  { port: 'http', transport: 'http', onApproval: 'approve' },
)

const toolList: Schema = listOf(
  valueThat('a tool, such as defineTool makes it', (value) => {
    const { name, run, check } = Object(value) as Partial<Tool>
    return typeof name === 'string' && typeof run === 'function' && typeof check === 'function'
  }),
)

const serverPackage: OptionalPackage<typeof sdk> = declarePackage(
  '@modelcontextprotocol/server',
  () => import('@modelcontextprotocol/server'),
)

const nodePackage: OptionalPackage<typeof node> = declarePackage(
  '@modelcontextprotocol/node',
  () => import('@modelcontextprotocol/node'),
)

/** Tools that are served. */
export interface ServedMcp {
  /** Of a server over HTTP. */
  readonly url?: string
  /** Resolves when the client has gone (standard input has ended), or after `close`. */
  readonly closed: Promise<void>
  /** Cancels what is under way and stops serving. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves tools to MCP clients, such as Claude Desktop, with progress and cancel: over the standard input and output of this
 * process (which must then print nothing else there), or over HTTP. Needs the package `@modelcontextprotocol/server`, and
 * over HTTP `@modelcontextprotocol/node`. Rejects with a `ConfigurationError` for what cannot be
 * served, and without these packages.
 */
export async function serveMcp(
  tools: readonly Tool<unknown>[],
  options: ServeMcpOptions = {},
): Promise<ServedMcp> {
  requireOptions('serveMcp', toolList, tools, 'tools')
  requireOptions('serveMcp', serveOptions, options)
  requireServable(tools, options)
  const sdk = await serverPackage.load('serveMcp()')
  const stop = new AbortController()
  const parts = { tools, options, sdk, stop: stop.signal, timers: options.timers ?? hostTimers }
  const factory = createServerFactory(parts)
  if (options.http !== undefined) {
    const listener = await listenHttp(factory, options.http, sdk)
    return createServed(stop, () => listener.close(), listener.url)
  }
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  const handle = serveStdio(factory)
  const end = createServed(stop, () => handle.close())
  // The client has closed its side, and reads no answers any more.
  process.stdin.once('end', () => void end.close())
  return end
}

function requireServable(tools: readonly Tool[], { runtime, http = {} }: ServeMcpOptions): void {
  const names = new Set<string>()
  for (const tool of tools) {
    if (names.has(tool.name)) {
      throw new ConfigurationError(
        `serveMcp: two tools have the name ${tool.name}. Give one of them another.`,
      )
    }
    names.add(tool.name)
    if (tool.child !== undefined && (!isAgentTool(tool) || runtime === undefined)) {
      throw new ConfigurationError(
        `serveMcp: the tool ${tool.name} is an agent, which only a runtime runs. Give the runtime as an option.`,
      )
    }
    if (tool.handoff !== undefined) {
      throw new ConfigurationError(
        `serveMcp: the tool ${tool.name} hands a conversation over, and a client's call has no conversation.`,
      )
    }
  }
  const { host = '127.0.0.1', token } = http
  const isLoopback = host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
  if (!isLoopback && token === undefined) {
    throw new ConfigurationError(
      `serveMcp: ${host} can be reached from other machines. Give a token that clients have to send, or leave host out.`,
    )
  }
}

function createServed(stop: AbortController, end: () => Promise<void>, url?: string): ServedMcp {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let closing: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      stop.abort()
      await end()
      resolve()
    })())
  return { ...(url !== undefined && { url }), closed, close, [Symbol.asyncDispose]: close }
}

/** Listens for MCP clients at `/mcp`. Rejects if the port cannot be had. */
async function listenHttp(
  factory: () => sdk.Server,
  { port = 0, host = '127.0.0.1', token }: ServeHttpOptions,
  { createMcpHandler }: Pick<typeof sdk, 'createMcpHandler'>,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const node = await nodePackage.load('serveMcp()')
  const handler = createMcpHandler(factory)
  const answer = node.toNodeHandler(handler)
  // A page in a browser of this machine must not reach it by another name, nor from its own origin.
  const guards = token === undefined ? [node.localhostHostValidation(), node.localhostOriginValidation()] : []
  const server = createHttpServer((request, response, { pathname }) => {
    if (!guards.every((isAllowed) => isAllowed(request, response))) return undefined
    if (pathname !== '/mcp') return response.writeHead(404).end()
    if (token !== undefined && !isSameSecret(request.headers.authorization ?? '', `Bearer ${token}`)) {
      return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    }
    return answer(request as Parameters<typeof answer>[0], response)
  })
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new ConfigurationError(
      `serveMcp: it cannot listen at ${host}:${port} (${error instanceof Error ? error.message : String(error)}).`,
      { cause: error },
    )
  }
  const { port: given } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${given}/mcp`,
    async close() {
      server.close()
      // Streams of events end before the remaining connections are broken off.
      await handler.close()
      server.closeAllConnections()
    },
  }
}

export interface FactoryParts {
  readonly tools: readonly Tool<unknown>[]
  readonly options: ServeMcpOptions
  readonly sdk: typeof sdk
  /** Aborts when nothing is served any more. */
  readonly stop: AbortSignal
  readonly timers: Timers
}

/** Makes a server for each connection, or for each request where the protocol knows no connections. */
export function createServerFactory(parts: FactoryParts): () => Server {
  const { tools, options } = parts
  const { name = 'tallystick', version = '1.0.0', instructions } = options
  const listed = tools.map((tool): sdk.Tool => ({
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema as sdk.Tool['inputSchema'],
    annotations: { readOnlyHint: tool.effect === 'read' },
  }))
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return () => {
    const server = new parts.sdk.Server(
      { name, version },
      { capabilities: { tools: {} }, ...omitUndefined({ instructions }) },
    )
    server.setRequestHandler('tools/list', () => ({ tools: listed }))
    server.setRequestHandler(
      'tools/call',
      async ({ params }, context) => await answer(byName.get(params.name), params, context, parts),
    )
    return server
  }
}

async function answer(
  tool: Tool<unknown> | undefined,
  { name, arguments: input = {} }: CallToolRequest['params'],
  { mcpReq }: ServerContext,
  { tools, options, stop, timers }: FactoryParts,
): Promise<CallToolResult> {
  if (tool === undefined) {
    const names = tools.map((each) => each.name)
    const near = findNearestNames(name, names, 3)
    const hint = near.length === 0 ? '' : ` The nearest are ${near.join(', ')}.`
    const text = `There is no tool ${JSON.stringify(name.slice(0, 100))}. Nothing was run.${hint}`
    return toServedResult(createTextEnding('unknown_tool', text))
  }
  const fault = findParsedFault(input)
  if (fault !== undefined)
    return toServedResult(createTextEnding('invalid_input', `${fault} Nothing was run.`))
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's own name
  const meta = mcpReq._meta ?? {}
  const key = meta[idempotencyKeyName]
  const call: ServedCallParts = {
    input: input as JsonObject,
    signal: AbortSignal.any([mcpReq.signal, stop]),
    progress: createReporter(mcpReq, meta.progressToken),
    idempotencyKey: typeof key === 'string' && key !== '' && key.length <= 256 ? key : undefined,
    context: options.context,
    timers,
    approve: options.approve,
  }
  const { runtime } = options
  try {
    const ending =
      isAgentTool(tool) && runtime !== undefined
        ? await callAgent(tool, runtime, call)
        : await callTool(tool, call)
    return toServedResult(ending)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return toServedResult(createTextEnding('failed', `The tool failed: ${why}`))
  }
}

/**
 * Passes progress on, where the client wants it: its numbers, or how many reports there were. A report that JSON cannot
 * carry is dropped.
 */
function createReporter(
  mcpReq: ServerContext['mcpReq'],
  progressToken: string | number | undefined,
): (data: Json) => void {
  if (progressToken === undefined) return () => {}
  let reports = 0
  return (reported) => {
    let data: Json
    try {
      // Tools that `defineTool` did not make may report anything.
      data = toJson(reported)
    } catch {
      return
    }
    const { progress = ++reports, total, message } = Object(data) as Readonly<Record<string, unknown>>
    const logged =
      typeof message === 'string' ? message : typeof data === 'string' ? data : JSON.stringify(data)
    const params = {
      progressToken,
      progress: typeof progress === 'number' ? progress : ++reports,
      ...(typeof total === 'number' && { total }),
      message: logged.slice(0, 1_000),
    }
    // A client that has gone hears of nothing any more.
    void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
  }
}

/** A call that is checked, and that a person may have to approve. */
export interface ServedCall {
  readonly tool: string
  readonly input: JsonObject
  /** Why the tool asks, if it says so. */
  readonly reason?: string
}

interface ServedCallParts {
  readonly input: JsonObject
  readonly signal: AbortSignal
  readonly progress: (data: Json) => void
  /** The key by which the client recognises the call; a new one if it gave none. */
  readonly idempotencyKey?: string | undefined
  readonly context: unknown
  readonly timers: Timers
  /** Decides where a tool asks for approval. Without it such calls are refused. */
  readonly approve?: ((call: ServedCall) => boolean | Promise<boolean>) | undefined
}

/** Makes one call of a tool for a client: checks it, asks where the tool asks, runs it, and stops it at its time. */
async function callTool(tool: Tool<unknown>, parts: ServedCallParts): Promise<Ending> {
  const { input, signal, context, approve, idempotencyKey = randomUUID() } = parts
  const runId = parseRunId(randomUUID())
  if (runId === undefined) throw new Error('A UUID is not a run id.')
  const place = { runId, turn: 1, toolCallId: deriveToolCallId(runId, 1, 1, 1), context }
  const verdict = await tool.check(input, place)
  if (verdict.kind === 'refuse') return createTextEnding(verdict.outcome, verdict.text)
  if (verdict.kind === 'ask') {
    const { reason } = verdict
    if ((await approve?.({ tool: tool.name, input, ...omitUndefined({ reason }) })) !== true) {
      const why = reason === undefined ? '' : ` (${reason})`
      const text = `A person has to approve this call${why}, and no person did. Nothing was run.`
      return createTextEnding('denied', text)
    }
  }
  if (signal.aborted) return createTextEnding('cancelled', 'The call was cancelled. Nothing was run.')
  return await waitForEnd(tool, { ...place, input, attempt: 1, idempotencyKey }, parts)
}

function waitForEnd(
  tool: Tool<unknown>,
  run: Omit<ToolRun, 'cancelled$'>,
  { signal, progress, timers }: ServedCallParts,
): Promise<Ending> {
  return new Promise((resolve) => {
    const cancelled$ = new ReplaySubject<string>()
    const stop = (): void => cancelled$.next('the client cancelled the call')
    const time = new AttemptTime(timers, tool, (reason) => {
      // Before the tool learns of it: its later reports are too late.
      end(createTextEnding('timed_out', 'The tool was given up because it took too long.'))
      cancelled$.next(reason)
    })
    const end = (ending: Ending): void => {
      time.stop()
      signal.removeEventListener('abort', stop)
      resolve(ending)
    }
    signal.addEventListener('abort', stop)
    new Observable<ToolSignal>((subscriber) =>
      tool.run({ ...run, cancelled$ }).subscribe(subscriber),
    ).subscribe({
      next: (report) => {
        if (report.type === 'tool_progressed') {
          time.onReport()
          progress(report.data)
        } else if (report.type === 'tool_ended') end(report)
        else {
          const text = `The work continues elsewhere (${report.externalId}), and no client hears of its end.`
          end(createTextEnding('failed', text))
        }
      },
      error: (error: unknown) => end(createTextEnding('failed', `The tool failed: ${String(error)}`)),
      complete: () => end(createTextEnding('failed', 'The tool ended without a result.')),
    })
  })
}

/** Has an agent answer a client, in a run of its own that is on record. The client learns which tools it calls. */
export async function callAgent(
  { agent, name, toTask, toAnswer }: AgentTool,
  runtime: Runtime,
  { input, signal, progress, context }: ServedCallParts,
): Promise<Ending> {
  const given = await toTask(input)
  if ('fault' in given) {
    return createTextEnding(
      'invalid_input',
      `The input does not fit the schema of ${name}: ${given.fault}. Nothing was run.`,
    )
  }
  const run: Run = runtime.run(agent, given.task, { context })
  const cancel = (): void => void run.cancel('the client cancelled the call').catch(() => {})
  signal.addEventListener('abort', cancel)
  if (signal.aborted) cancel()
  const following = run.events$.pipe(filter(({ type }) => type === 'tool_requests_collected')).subscribe({
    next: (event) => {
      if (event.type === 'tool_requests_collected') {
        progress({ message: `calls ${event.calls.map((call) => call.name).join(', ')}` })
      }
    },
    // The result contains the error.
    error: () => {},
  })
  try {
    return endRun(await run.result, toAnswer)
  } finally {
    following.unsubscribe()
    signal.removeEventListener('abort', cancel)
  }
}

function endRun(result: RunResult, toAnswer: AgentTool['toAnswer']): Ending {
  const { runId, text, pendingApprovals } = result
  switch (result.status) {
    case 'done': {
      if (result.reason !== 'answered') {
        return createTextEnding(
          'failed',
          `The agent ended without an answer (${result.reason}). ${text}\nIts run is ${runId}.`,
        )
      }
      const { output = text, turns, toolCalls } = result
      if (toAnswer !== undefined) {
        try {
          const read = toAnswer({ text, output: result.output, turns, toolCalls })
          return typeof read === 'string'
            ? createTextEnding('success', read)
            : { outcome: 'success', content: read }
        } catch (error) {
          return endThrown(error)
        }
      }
      return createTextEnding('success', typeof output === 'string' ? output : JSON.stringify(output))
    }
    case 'suspended': {
      const waits = pendingApprovals.map((each) => each.name).join(', ')
      const what = waits === '' ? 'a person' : `a person who decides about ${waits}`
      return createTextEnding(
        'failed',
        `The agent waits for ${what}. Its run is ${runId}: decide there, and ask again.`,
      )
    }
    case 'interrupted':
      return createTextEnding(
        'failed',
        `The agent was interrupted. Its run is ${runId}, which can be resumed.`,
      )
  }
}

function toServedResult({ outcome, content }: Ending): CallToolResult {
  return { content: content.map(toBlock), ...(outcome !== 'success' && { isError: true }) }
}

function toBlock(part: ResultPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { mediaType: mimeType, url, data } = part
  if (url !== undefined) return { type: 'resource_link', uri: url, name: url, mimeType }
  if (data === undefined) {
    return { type: 'text', text: `(${mimeType}, which a provider of models keeps.)` }
  }
  if (part.type === 'image') return { type: 'image', data, mimeType }
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType }
  const uri = `file:///${encodeURIComponent(part.name ?? 'result')}`
  return { type: 'resource', resource: { uri, blob: data, mimeType } }
}

/** The name under which a client may send the key by which it knows a call again. */
const idempotencyKeyName = 'io.github.tallystick/idempotency-key'
