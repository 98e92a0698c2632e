import type * as sdk from '@modelcontextprotocol/server'
import type { CallToolRequest, CallToolResult, Server, ServerContext } from '@modelcontextprotocol/server'
import type { Tool } from '@tallystick/core'
import { isAgentTool, nearestNames, omitUndefined } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import type { Timers } from '../../built-in/timers.ts'
import { jsonOf } from '../../content/json-value.ts'
import { type Ending, textEnding } from '../../execution/outcome.ts'
import { servedAgent } from './served-agent.ts'
import { servedCall, type ServedCallParts } from './served-call.ts'
import { servedResult } from './served-content.ts'
import type { ServeMcpOptions } from './serve-options.ts'

/** The name under which a client may send the key by which it knows a call again. */
const idempotencyKeyName = 'io.github.tallystick/idempotency-key'

/** What the servers of all connections share. */
export interface FactoryParts {
  readonly tools: readonly Tool<unknown>[]
  readonly options: ServeMcpOptions
  readonly sdk: typeof sdk
  /** Aborts when nothing is served any more. */
  readonly stop: AbortSignal
  readonly timers: Timers
}

/** Makes a server for each connection, or for each request where the protocol knows no connections. */
export function serverFactory(parts: FactoryParts): () => Server {
  const { tools, options } = parts
  const { name = 'tallystick', version = '1.0.0', instructions } = options
  const listed = tools.map(listedTool)
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

function listedTool({ name, description, inputSchema, effect }: Tool<unknown>): sdk.Tool {
  return {
    name,
    description,
    inputSchema: inputSchema as sdk.Tool['inputSchema'],
    annotations: { readOnlyHint: effect === 'read' },
  }
}

async function answer(
  tool: Tool<unknown> | undefined,
  { name, arguments: input = {} }: CallToolRequest['params'],
  { mcpReq }: ServerContext,
  { tools, options, stop, timers }: FactoryParts,
): Promise<CallToolResult> {
  if (tool === undefined) return servedResult(unknownTool(name, tools))
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's own name
  const meta = mcpReq._meta ?? {}
  const key = meta[idempotencyKeyName]
  const call: ServedCallParts = {
    input: input as JsonObject,
    signal: AbortSignal.any([mcpReq.signal, stop]),
    progress: reporter(mcpReq, meta.progressToken),
    idempotencyKey: typeof key === 'string' && key !== '' && key.length <= 256 ? key : undefined,
    context: options.context,
    timers,
    approve: options.approve,
  }
  return servedResult(await endingOf(tool, call, options))
}

async function endingOf(
  tool: Tool<unknown>,
  call: ServedCallParts,
  { runtime }: ServeMcpOptions,
): Promise<Ending> {
  try {
    if (isAgentTool(tool) && runtime !== undefined) return await servedAgent(tool, runtime, call)
    return await servedCall(tool, call)
  } catch (error) {
    return textEnding('failed', `The tool failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function unknownTool(name: string, tools: readonly Tool<unknown>[]): Ending {
  const near = nearestNames(
    name,
    tools.map((tool) => tool.name),
    3,
  )
  const hint = near.length === 0 ? '' : ` The nearest are ${near.join(', ')}.`
  return textEnding(
    'unknown_tool',
    `There is no tool ${JSON.stringify(name.slice(0, 100))}. Nothing was run.${hint}`,
  )
}

/**
 * Passes progress on, where the client wants it: its numbers, or how many reports there were. A report that JSON cannot
 * carry is dropped.
 */
function reporter(
  mcpReq: ServerContext['mcpReq'],
  progressToken: string | number | undefined,
): (data: Json) => void {
  if (progressToken === undefined) return () => {}
  let reports = 0
  return (reported) => {
    const data = carried(reported)
    if (data === undefined) return
    const { progress = ++reports, total, message } = Object(data) as Readonly<Record<string, unknown>>
    const logged = typeof message === 'string' ? message : textOfJson(data)
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

function textOfJson(data: Json): string {
  return typeof data === 'string' ? data : JSON.stringify(data)
}

/** A report as JSON carries it. Tools that `defineTool` did not make may report anything. */
function carried(reported: unknown): Json | undefined {
  try {
    return jsonOf(reported)
  } catch {
    return undefined
  }
}
