import type { Client, Prompt, RequestOptions } from '@modelcontextprotocol/client'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { findNearestNames, omitUndefined } from '@tallystick/core/internal'
import type {
  CallVerdict,
  Json,
  JsonObject,
  Recovery,
  ResultPart,
  ToolEffect,
} from '@tallystick/core/vocabulary'
import { type Observable, Subject } from 'rxjs'
import { createTool } from '../define/define-tool.ts'
import { ToolError } from '../define/outcome.ts'
import { askTraceparent } from '../define/run-tool.ts'
import { createSchemaParse } from '../define/schema.ts'
import { hostTimers, startProcessGuard } from '../host.ts'
import { callTool, defaultMaxTotalMs, waitForClient, runWithinCallTime } from './call.ts'
import { mcpPackage, type SharedParts } from './client.ts'
import { type ConnectionState, McpConnection } from './connection.ts'
import { createFailureError, noTimeoutMs, readCallFailure } from './deadline.ts'
import type { Annotations, ListedTool, ToolChanges } from './listing.ts'
import { type McpOptions, requireMcpOptions } from './options.ts'
import { readCheckedSchema, type ResultReading, toParts, toResourcePart, toResultContent } from './result.ts'
import { cleanLine, cleanText, findKnownSecrets, withoutSecrets } from './secrets.ts'

/** MCP servers that run, and their tools. */
export interface McpManager {
  /** The tools of all servers, as listed now. When a lost server is connected again, so are its tools. */
  readonly tools: readonly Tool[]
  readonly servers: readonly McpServerStatus[]
  /** Emits when a server changes its list of tools. */
  readonly changes$: Observable<ToolChanges>
  /**
   * Digests of the tools as they are now: pass them as `pins` to a later manager, in any process. A tool whose
   * description or schema has changed since then needs an approval.
   */
  readonly pins: Readonly<Record<string, string>>
  /** Calls a tool by the name that its server knows. Rejects with a `ToolError`. */
  call(
    server: string,
    tool: string,
    input: JsonObject,
    options?: McpCallOptions,
  ): Promise<readonly ResultPart[]>
  resources(server: string): Promise<readonly McpResource[]>
  readResource(server: string, uri: string): Promise<readonly ResultPart[]>
  prompts(server: string): Promise<readonly McpPrompt[]>
  getPrompt(
    server: string,
    prompt: string,
    input?: Readonly<Record<string, string>>,
  ): Promise<McpPromptMessages>
  /** Tries at once to connect to a failed server; resolves with its new status. */
  reconnect(server: string): Promise<McpServerStatus>
  /** Ends every connection, and every process with all that it started. Resolves when all have ended. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** The status of a server. */
export interface McpServerStatus {
  readonly name: string
  readonly state: ConnectionState
  /** `stdio`, `http` or `sse`, while it is connected. */
  readonly transport?: 'stdio' | 'http' | 'sse'
  /** The name and version that the server gives itself. */
  readonly server?: { readonly name: string; readonly version: string }
  /** The revision of the protocol that is spoken, such as `2025-11-25`. */
  readonly protocolVersion?: string
  /** How many tools it offers. */
  readonly tools: number
  /**
   * Why the server cannot be used; and which of its tools are left out, and why. Without secrets and control
   * characters.
   */
  readonly faults: readonly string[]
}

/** Options of a call that no agent makes. */
export interface McpCallOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (data: Json) => void
}

/** A resource or a template of resources, as a server lists it. */
export interface McpResource {
  /** Of a template, its pattern, such as `file:///{path}`. */
  readonly uri: string
  readonly isTemplate: boolean
  readonly name: string
  readonly description?: string
  readonly mimeType?: string
}

/** A prompt, as a server lists it. */
export interface McpPrompt {
  readonly name: string
  readonly description?: string
  readonly arguments: readonly {
    readonly name: string
    readonly description?: string
    readonly required: boolean
  }[]
}

/** A prompt with its arguments filled in. */
export interface McpPromptMessages {
  readonly description?: string
  readonly messages: readonly {
    readonly role: 'user' | 'assistant'
    readonly content: readonly ResultPart[]
  }[]
}

/**
 * Connects to MCP servers, all at the same time, and resolves when each is ready or has failed: `servers` says which.
 * The tools of the ready servers can be used. `close` the manager, or declare it with `await using`. Needs the package
 * `@modelcontextprotocol/client`. Rejects with a `ConfigurationError` for options that cannot work, and if a `required`
 * server has failed.
 */
export async function mcpTools(options: McpOptions): Promise<McpManager> {
  requireMcpOptions(options)
  const sdk = await mcpPackage.load('mcpTools()')
  const changes$ = new Subject<ToolChanges>()
  const guard = startProcessGuard()
  const shared: SharedParts = {
    sdk,
    guard,
    hooks: { elicit: options.elicit, sample: options.sample },
    sampling: { maxPerCall: 3, maxTokens: 4_096, ...omitUndefined({ ...options.sampleLimits }) },
    traceparent: options.traceparent,
    timers: options.timers ?? hostTimers,
    random: options.random ?? Math.random,
    environment: options.environment ?? process.env,
    backoff: { baseMs: 250, capMs: 15_000, maxAttempts: 5, ...omitUndefined({ ...options.reconnect }) },
    onChange: (changes) => changes$.next(changes),
  }
  const connections = new Map(
    Object.entries(options.servers)
      .filter(([, server]) => server.disabled !== true)
      .map(([name, server]) => [
        name,
        new McpConnection({ name, options: server, secrets: findKnownSecrets(server) }, shared),
      ]),
  )
  const manager = createManager(connections, shared, options, changes$)
  await Promise.all([...connections.values()].map((connection) => connection.start()))
  // Later lists are compared with this first one.
  void manager.tools
  const missing = [...connections.values()].filter(
    (connection) => connection.server.options.required === true && connection.state() !== 'ready',
  )
  if (missing.length > 0) {
    const faults = missing.map((connection) => `${connection.server.name}: ${connection.faults().join('; ')}`)
    await manager.close()
    throw new ConfigurationError(
      `mcpTools: not every required MCP server could be started. ${faults.join('\n')}`,
    )
  }
  return manager
}

function createManager(
  connections: ReadonlyMap<string, McpConnection>,
  shared: SharedParts,
  options: McpOptions,
  changes$: Subject<ToolChanges>,
): McpManager {
  const pins = createPins(options.pins ?? {})
  const made = new Map<McpConnection, { readonly from: unknown; readonly tools: readonly Tool[] }>()
  const listTools = (connection: McpConnection): readonly Tool[] => {
    const from = connection.listing()
    const known = made.get(connection)
    if (known?.from === from) return known.tools
    const tools = listOffered(connection).map((listed) => {
      pins.see(listed)
      return createMcpTool(listed, connection, shared, pins, namesNow)
    })
    made.set(connection, { from, tools })
    return tools
  }
  const allTools = (): readonly Tool[] => {
    const names = new Set<string>()
    // The names of two servers may be alike to the letter once they are cut: then the first one keeps its tool.
    return [...connections.values()]
      .flatMap(listTools)
      .filter(({ name }) => !names.has(name) && names.add(name))
  }
  const namesNow = (): readonly string[] => allTools().map(({ name }) => name)
  const requireConnection = (server: string): McpConnection => {
    const connection = connections.get(server)
    if (connection !== undefined) return connection
    throw new ToolError(
      `There is no MCP server ${JSON.stringify(server)} here. ${listKnown([...connections.keys()], server)}`,
    )
  }
  // List the tools again after each change.
  changes$.subscribe(() => void namesNow())
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await Promise.all([...connections.values()].map((connection) => connection.close()))
    await shared.guard.close()
    changes$.complete()
  }
  return {
    get tools() {
      return allTools()
    },
    get servers() {
      return [...connections.values()].map(readStatus)
    },
    get pins() {
      allTools()
      return pins.all()
    },
    changes$: changes$.asObservable(),
    call: async (server, name, input, given = {}) =>
      await callByName(requireConnection(server), shared, { name, input, ...given }),
    resources: async (server) => await listResources(requireConnection(server), shared),
    readResource: async (server, uri) => await readResource(requireConnection(server), shared, uri),
    prompts: async (server) => await listPrompts(requireConnection(server), shared),
    getPrompt: async (server, prompt, input = {}) =>
      await readPrompt(requireConnection(server), shared, prompt, input),
    async reconnect(server) {
      const connection = requireConnection(server)
      // How it ended, the status says.
      await connection.ready(new AbortController().signal).catch(() => {})
      return readStatus(connection)
    },
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  }
}

async function callByName(
  connection: McpConnection,
  shared: SharedParts,
  { name, input, signal, onProgress }: McpCallOptions & { readonly name: string; readonly input: JsonObject },
): Promise<readonly ResultPart[]> {
  const { server } = connection
  const { tools } = connection.listing()
  const tool = tools.get(name)
  if (tool === undefined) {
    const hint = listKnown([...tools.keys()], name)
    throw new ToolError(`The MCP server ${server.name} has no tool ${JSON.stringify(name)}. ${hint}`)
  }
  const { effect } = readEffect(tool.annotations, server.options.trusted === true)
  const call = {
    ...{ tool, input, effect, signal: signal ?? new AbortController().signal },
    progress: onProgress ?? ((): void => {}),
  }
  return await toCallContent(await callTool(call, connection, shared), tool, connection)
}

function listOffered(connection: McpConnection): readonly ListedTool[] {
  const { includeTools, excludeTools = [] } = connection.server.options
  return [...connection.listing().tools.values()].filter(
    ({ name }) => (includeTools === undefined || includeTools.includes(name)) && !excludeTools.includes(name),
  )
}

function readStatus(connection: McpConnection): McpServerStatus {
  const opened = connection.current()
  const version = opened?.client.getServerVersion()
  const protocolVersion = opened?.client.getNegotiatedProtocolVersion()
  return {
    name: connection.server.name,
    state: connection.state(),
    ...(opened && { transport: opened.kind }),
    ...(version && {
      server: { name: cleanLine(version.name, 100), version: cleanLine(version.version, 100) },
    }),
    ...(protocolVersion !== undefined && { protocolVersion }),
    tools: listOffered(connection).length,
    faults: connection.faults(),
  }
}

function listKnown(names: readonly string[], given: string): string {
  const near = findNearestNames(given, names, 3)
  if (near.length > 0) return `Did you mean ${near.join(', ')}?`
  return names.length === 0 ? 'It offers nothing.' : `There are ${names.slice(0, 20).join(', ')}.`
}

const maxTextCharacters = 8_000

/** Sends a request to a server, within the time of a call. Rejects with a `ToolError`. */
async function ask<Answer>(
  connection: McpConnection,
  shared: SharedParts,
  request: (client: Client, options: RequestOptions) => Promise<Answer>,
): Promise<Answer> {
  let isConnected = false
  const describeLate = (): string => (isConnected ? '' : ' There was no connection to it.')
  return await runWithinCallTime(connection, shared, {}, describeLate, async (deadline, signal) => {
    const { client } = await waitForClient(connection, signal)
    isConnected = true
    deadline.progress()
    try {
      return await request(client, { signal, timeout: noTimeoutMs })
    } catch (error) {
      signal.throwIfAborted()
      throw createFailureError(readCallFailure(error, shared), connection.server, connection.faults())
    }
  })
}

/** The resources of a server and its templates of resources; nothing of a server that has neither. */
export function listResources(
  connection: McpConnection,
  shared: SharedParts,
): Promise<readonly McpResource[]> {
  return ask(connection, shared, async (client, request) => {
    if (client.getServerCapabilities()?.resources === undefined) return []
    const { resources } = await client.listResources(undefined, request)
    // Many servers have resources and no templates, and some answer with an error to that.
    const templates = await client.listResourceTemplates(undefined, request).catch(() => undefined)
    return [
      ...resources.map((each) => ({ ...each, isTemplate: false })),
      ...(templates?.resourceTemplates ?? []).map((each) => ({
        ...each,
        uri: each.uriTemplate,
        isTemplate: true,
      })),
    ].map(({ uri, name, description, mimeType, isTemplate }) => ({
      uri: cleanPart(connection, uri),
      isTemplate,
      name: cleanPart(connection, name),
      ...cleanDescription(connection, description),
      ...(mimeType !== undefined && { mimeType: cleanPart(connection, mimeType) }),
    }))
  })
}

export function readResource(
  connection: McpConnection,
  shared: SharedParts,
  uri: string,
): Promise<readonly ResultPart[]> {
  return ask(connection, shared, async (client, request) => {
    const { contents } = await client.readResource({ uri }, request)
    const [first] = contents
    if (contents.length === 1 && first && !('text' in first)) return [toResourcePart(first)]
    const blocks = contents.map((resource) => ({ type: 'resource' as const, resource }))
    return toParts(blocks, createReading(connection))
  })
}

/** The prompts of a server; nothing of a server that has no prompts. */
export function listPrompts(connection: McpConnection, shared: SharedParts): Promise<readonly McpPrompt[]> {
  return ask(connection, shared, async (client, request) => {
    if (client.getServerCapabilities()?.prompts === undefined) return []
    const { prompts } = await client.listPrompts(undefined, request)
    return prompts.map((prompt: Prompt) => ({
      name: cleanPart(connection, prompt.name),
      ...cleanDescription(connection, prompt.description),
      arguments: (prompt.arguments ?? []).map((argument) => ({
        name: cleanPart(connection, argument.name),
        ...cleanDescription(connection, argument.description),
        required: argument.required === true,
      })),
    }))
  })
}

/** A prompt with its arguments filled in. */
export function readPrompt(
  connection: McpConnection,
  shared: SharedParts,
  name: string,
  input: Readonly<Record<string, string>>,
): Promise<McpPromptMessages> {
  return ask(connection, shared, async (client, request) => {
    const { description, messages } = await client.getPrompt({ name, arguments: { ...input } }, request)
    const reading = createReading(connection)
    return {
      ...cleanDescription(connection, description),
      messages: messages.map(({ role, content }) => ({ role, content: toParts([content], reading) })),
    }
  })
}

function cleanPart({ server }: McpConnection, text: string): string {
  return cleanText(withoutSecrets(text, server.secrets), maxTextCharacters)
}

function cleanDescription(
  connection: McpConnection,
  description: string | undefined,
): { readonly description?: string } {
  return description === undefined ? {} : { description: cleanPart(connection, description) }
}

const maxRemembered = 10_000

/** A server's tool, as it was listed, as a tool of an agent. */
function createMcpTool(
  listed: ListedTool,
  connection: McpConnection,
  shared: SharedParts,
  pins: PinnedTools,
  /** The names of all tools that there are now, for a call of one that is gone. */
  namesNow: () => readonly string[],
): Tool {
  const { options, name: server } = connection.server
  const { approval = 'never' } = options
  const { effect, recovery } = readEffect(listed.annotations, options.trusted === true)
  /** Digests of the tools that checks of calls have seen: the same must run. */
  const judged = new Map<string, string>()
  const jsonSchema = readCheckedSchema(listed.inputSchema)
  const tool = createTool<JsonObject>(
    {
      name: listed.exposedName,
      description: listed.description,
      effect,
      recovery,
      // The user's policy, and always a question if the tool has changed.
      async approval(input, context) {
        const now = connection.listing().tools.get(listed.name) ?? listed
        if (pins.hasChanged(now))
          return (
            `The MCP server ${cleanLine(server, 64)} has changed the description or the input schema of this tool since it was ` +
            `first listed. It says now: ${cleanLine(now.description, 300)}`
          )
        if (typeof approval === 'function') return await approval(input, context)
        return approval === 'always'
      },
      // The call's own time ends first. A person who answers a server's question takes the time that it takes.
      ...(shared.hooks.elicit !== undefined || shared.hooks.sample !== undefined
        ? {}
        : { timeoutMs: (options.maxTotalMs ?? defaultMaxTotalMs) + 2_000 }),
      async execute(input, context) {
        const { signal, progress, idempotencyKey, toolCallId, left, spend } = context
        const now = connection.listing().tools.get(listed.name) ?? listed
        const seen = judged.get(toolCallId)
        judged.delete(toolCallId)
        if (seen !== undefined && seen !== now.digest) {
          throw new ToolError(
            `The server ${server} has changed this tool since the call was checked. Nothing was run. Ask again.`,
          )
        }
        pins.accept(now)
        const traceparent = await askTraceparent(shared.traceparent, context)
        const budget = { left, spend }
        const call = { tool: now, input, effect, signal, progress, idempotencyKey, traceparent, budget }
        const parts = await toCallContent(await callTool(call, connection, shared), now, connection)
        return parts.length === 0 ? undefined : parts
      },
    },
    { jsonSchema, parse: createSchemaParse(listed.exposedName, jsonSchema) },
  )
  return Object.freeze({
    ...tool,
    // The server's own schema; the checked one is weaker.
    inputSchema: listed.inputSchema,
    approval: typeof approval === 'function' ? 'by code' : approval,
    origin: Object.freeze({ server, name: listed.name }),
    check: (input, context): CallVerdict | Promise<CallVerdict> => {
      // As it was, where no list can be had.
      const now =
        connection.listing().tools.get(listed.name) ??
        (connection.current() === undefined ? listed : undefined)
      if (now === undefined) {
        const near = findNearestNames(listed.exposedName, namesNow(), 3)
        const hint = near.length === 0 ? '' : ` The nearest are ${near.join(', ')}.`
        const text = `The MCP server ${server} does not offer the tool ${listed.exposedName} any more. Nothing was run.${hint}`
        return { kind: 'refuse', outcome: 'unknown_tool', text }
      }
      if (judged.size >= maxRemembered) judged.clear()
      judged.set(context.toolCallId, now.digest)
      return tool.check(input, context)
    },
  } satisfies Tool)
}

/** How calls of a tool are treated, by its annotations if the server is trusted. */
export function readEffect(
  { readOnlyHint, idempotentHint }: Annotations,
  isTrusted: boolean,
): { readonly effect: ToolEffect; readonly recovery: Recovery } {
  if (!isTrusted) return { effect: 'write', recovery: 'report' }
  if (readOnlyHint === true) return { effect: 'read', recovery: 'rerun' }
  return { effect: 'write', recovery: idempotentHint === true ? 'rerun' : 'report' }
}

/** How a server's results are read. */
function createReading({ server: { options, secrets } }: McpConnection): ResultReading {
  const maxCharacters = options.maxResultCharacters ?? 100_000
  return { secrets, maxCharacters, maxBinaryCharacters: 50 * maxCharacters }
}

/** Throws a `ToolError` with the server's words if it says that the tool failed. */
async function toCallContent(
  result: Awaited<ReturnType<typeof callTool>>,
  { outputSchema }: ListedTool,
  connection: McpConnection,
): Promise<readonly ResultPart[]> {
  const parts = await toResultContent(result, outputSchema, createReading(connection))
  if (result.isError !== true) return parts
  const message = parts.map((part) => (part.type === 'text' ? part.text : `(${part.mediaType})`)).join('\n')
  throw new ToolError(message || 'The tool failed, and its server did not say why.')
}

/** The digest of each tool under which a person, or the first list of its server, has accepted it. */
interface PinnedTools {
  /** Accepts what is listed for the first time. */
  see(tool: ListedTool): void
  /** True if a tool differs from the one that was accepted. */
  hasChanged(tool: ListedTool): boolean
  /** A person has approved a call of the tool as it is now. */
  accept(tool: ListedTool): void
  /** The digests by the names of the tools. */
  all(): Readonly<Record<string, string>>
}

/** Begins with the digests that a person knows. */
function createPins(known: Readonly<Record<string, string>>): PinnedTools {
  const digests = new Map(Object.entries(known))
  return {
    see(tool) {
      if (!digests.has(tool.exposedName)) digests.set(tool.exposedName, tool.digest)
    },
    hasChanged: (tool) => (digests.get(tool.exposedName) ?? tool.digest) !== tool.digest,
    accept: (tool) => void digests.set(tool.exposedName, tool.digest),
    all: () => Object.fromEntries([...digests].toSorted(([one], [other]) => (one < other ? -1 : 1))),
  }
}
