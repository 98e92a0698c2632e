import { ConfigurationError, type Tool } from '@tallystick/core'
import { nearestNames, omitUndefined } from '@tallystick/core/kit'
import type { JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import { Subject } from 'rxjs'
import { hostTimers } from '../../built-in/timers.ts'
import { ToolError } from '../../execution/tool-error.ts'
import { callTool } from '../connection/call-tool.ts'
import { connectionTo, type McpConnection } from '../connection/connection.ts'
import type { SharedParts } from '../connection/shared-parts.ts'
import type { ListedTool } from '../listing/listed-tool.ts'
import type { ToolChanges } from '../listing/tool-changes.ts'
import { knownSecretsOf } from '../options/known-secrets-of.ts'
import { type McpOptions, requireMcpOptions } from '../options/manager-options.ts'
import { mcpPackage } from '../transport/mcp-packages.ts'
import { processGuard } from '../../execution/process-guard.ts'
import { cleanLine } from '../text/clean-text.ts'
import { effectOf } from './effect-of.ts'
import type { McpCallOptions, McpManager, McpServerStatus } from './manager.ts'
import { callContent, mcpTool } from './mcp-tool.ts'
import { pinnedTools } from './pinned-tools.ts'
import { promptOf, promptsOf, resourceAt, resourcesOf } from './server-requests.ts'

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
  const guard = processGuard()
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
        connectionTo({ name, options: server, secrets: knownSecretsOf(server) }, shared),
      ]),
  )
  const manager = managerOf(connections, shared, options, changes$)
  await Promise.all([...connections.values()].map((connection) => connection.start()))
  // What is listed first is what later lists are compared with.
  void manager.tools
  const missing = [...connections.values()].filter(
    ({ server, state }) => server.options.required === true && state() !== 'ready',
  )
  if (missing.length > 0) {
    const faults = missing.map(({ server, faults }) => `${server.name}: ${faults().join('; ')}`)
    await manager.close()
    throw new ConfigurationError(
      `mcpTools: not every required MCP server could be started. ${faults.join('\n')}`,
    )
  }
  return manager
}

function managerOf(
  connections: ReadonlyMap<string, McpConnection>,
  shared: SharedParts,
  options: McpOptions,
  changes$: Subject<ToolChanges>,
): McpManager {
  const pins = pinnedTools(options.pins ?? {})
  const made = new Map<McpConnection, { readonly from: unknown; readonly tools: readonly Tool[] }>()
  const toolsOf = (connection: McpConnection): readonly Tool[] => {
    const from = connection.listing()
    const known = made.get(connection)
    if (known?.from === from) return known.tools
    const tools = offeredTools(connection).map((listed) => {
      pins.see(listed)
      return mcpTool(listed, { connection, shared, pins, namesNow })
    })
    made.set(connection, { from, tools })
    return tools
  }
  const allTools = (): readonly Tool[] => {
    const names = new Set<string>()
    // The names of two servers may be alike to the letter once they are cut: then the first one keeps its tool.
    return [...connections.values()]
      .flatMap(toolsOf)
      .filter(({ name }) => !names.has(name) && names.add(name))
  }
  const namesNow = (): readonly string[] => allTools().map(({ name }) => name)
  const connectionOf = (server: string): McpConnection => {
    const connection = connections.get(server)
    if (connection !== undefined) return connection
    throw new ToolError(
      `There is no MCP server ${JSON.stringify(server)} here. ${known([...connections.keys()], server)}`,
    )
  }
  // What a change adds is listed first now.
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
      return [...connections.values()].map(statusOf)
    },
    get pins() {
      allTools()
      return pins.all()
    },
    changes$: changes$.asObservable(),
    call: async (server, name, input, given = {}) =>
      await callNamed(connectionOf(server), shared, { name, input, ...given }),
    resources: async (server) => await resourcesOf(connectionOf(server), shared),
    readResource: async (server, uri) => await resourceAt(connectionOf(server), shared, uri),
    prompts: async (server) => await promptsOf(connectionOf(server), shared),
    getPrompt: async (server, prompt, input = {}) =>
      await promptOf(connectionOf(server), shared, prompt, input),
    async reconnect(server) {
      const connection = connectionOf(server)
      // How it ended, the status says.
      await connection.ready(new AbortController().signal).catch(() => {})
      return statusOf(connection)
    },
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  }
}

/** One call of a tool by the name that its server knows. */
async function callNamed(
  connection: McpConnection,
  shared: SharedParts,
  { name, input, signal, onProgress }: McpCallOptions & { readonly name: string; readonly input: JsonObject },
): Promise<readonly ResultPart[]> {
  const { server, listing } = connection
  const tool = listing().tools.get(name)
  if (tool === undefined) {
    const hint = known([...listing().tools.keys()], name)
    throw new ToolError(`The MCP server ${server.name} has no tool ${JSON.stringify(name)}. ${hint}`)
  }
  const { effect } = effectOf(tool.annotations, server.options.trusted === true)
  const given = { tool, input, effect, signal: signal ?? new AbortController().signal }
  const progress = onProgress ?? ((): void => {})
  return await callContent(await callTool({ ...given, progress }, connection, shared), tool, connection)
}

/** The tools of a server that the user wants. */
function offeredTools(connection: McpConnection): readonly ListedTool[] {
  const { includeTools, excludeTools = [] } = connection.server.options
  return [...connection.listing().tools.values()].filter(
    ({ name }) => (includeTools === undefined || includeTools.includes(name)) && !excludeTools.includes(name),
  )
}

function statusOf(connection: McpConnection): McpServerStatus {
  const opened = connection.current()
  const version = opened?.client.getServerVersion()
  const protocolVersion = opened?.client.getNegotiatedProtocolVersion()
  return {
    name: connection.server.name,
    state: connection.state(),
    ...(opened && { transport: opened.kind }),
    ...(version && { server: { name: shown(version.name), version: shown(version.version) } }),
    ...(protocolVersion !== undefined && { protocolVersion }),
    tools: offeredTools(connection).length,
    faults: connection.faults(),
  }
}

function shown(text: string): string {
  return cleanLine(text, 100)
}

function known(names: readonly string[], given: string): string {
  const near = nearestNames(given, names, 3)
  if (near.length > 0) return `Did you mean ${near.join(', ')}?`
  return names.length === 0 ? 'It offers nothing.' : `There are ${names.slice(0, 20).join(', ')}.`
}
