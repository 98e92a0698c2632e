import type { Tool } from '@tallystick/core'
import { nearestNames } from '@tallystick/core/internal'
import type { CallVerdict, JsonObject, Recovery, ResultPart, ToolEffect } from '@tallystick/core/vocabulary'
import type { ApprovalContext, ApprovalFunction } from '../define/approval.ts'
import { createTool } from '../define/define-tool.ts'
import { ToolError } from '../define/outcome.ts'
import { type ToolContext, askTraceparent } from '../define/run-tool.ts'
import { createSchemaParse, type ReadSchema } from '../define/schema.ts'
import { callTool, defaultMaxTotalMs } from './call.ts'
import type { SharedParts } from './client.ts'
import type { McpConnection } from './connection.ts'
import type { Annotations, ListedTool } from './listing.ts'
import { readCheckedSchema, toResultContent, type ResultReading } from './result.ts'
import { cleanLine } from './secrets.ts'

export interface ToolParts {
  readonly connection: McpConnection
  readonly shared: SharedParts
  readonly pins: PinnedTools
  /** The names of all tools that there are now, for a call of one that is gone. */
  readonly namesNow: () => readonly string[]
}

const maxRemembered = 10_000

/** A server's tool, as it was listed, as a tool of an agent. */
export function createMcpTool(listed: ListedTool, parts: ToolParts): Tool {
  const { connection, shared, pins } = parts
  const { options, name: server } = connection.server
  const { effect, recovery } = readEffect(listed.annotations, options.trusted === true)
  /** Digests of the tools that checks of calls have seen: the same must run. */
  const judged = new Map<string, string>()
  const schema = createInputSchema(listed)
  const tool = createTool<JsonObject>(
    {
      name: listed.exposedName,
      description: listed.description,
      effect,
      recovery,
      approval: createApproval(listed, parts),
      // The call's own time ends first. A person who answers a server's question takes the time that it takes.
      ...(shared.hooks.elicit !== undefined || shared.hooks.sample !== undefined
        ? {}
        : { timeoutMs: (options.maxTotalMs ?? defaultMaxTotalMs) + 2_000 }),
      execute: (input, context) => execute(input, context),
    },
    schema,
  )
  const execute = async (
    input: JsonObject,
    context: ToolContext,
  ): Promise<readonly ResultPart[] | undefined> => {
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
  }
  return Object.freeze({
    ...tool,
    // The server's own; what is checked here says less.
    inputSchema: listed.inputSchema,
    approval: typeof options.approval === 'function' ? 'by code' : (options.approval ?? 'never'),
    origin: Object.freeze({ server, name: listed.name }),
    check: (input, context): CallVerdict | Promise<CallVerdict> => {
      const now = findListed(listed, connection)
      if (now === undefined) return refuseGone(listed.exposedName, server, parts.namesNow())
      if (judged.size >= maxRemembered) judged.clear()
      judged.set(context.toolCallId, now.digest)
      return tool.check(input, context)
    },
  } satisfies Tool)
}

/** The tool as its server lists it now; as it was, where no list can be had. */
function findListed(listed: ListedTool, connection: McpConnection): ListedTool | undefined {
  const now = connection.listing().tools.get(listed.name)
  return now ?? (connection.current() === undefined ? listed : undefined)
}

/** How calls of a tool are treated, by what its server says about it, where that is believed. */
export function readEffect(
  { readOnlyHint, idempotentHint }: Annotations,
  isTrusted: boolean,
): { readonly effect: ToolEffect; readonly recovery: Recovery } {
  if (!isTrusted) return { effect: 'write', recovery: 'report' }
  if (readOnlyHint === true) return { effect: 'read', recovery: 'rerun' }
  return { effect: 'write', recovery: idempotentHint === true ? 'rerun' : 'report' }
}

/** How a server's results are read. */
export function createReading({ server: { options, secrets } }: McpConnection): ResultReading {
  const maxCharacters = options.maxResultCharacters ?? 100_000
  return { secrets, maxCharacters, maxBinaryCharacters: 50 * maxCharacters }
}

function createInputSchema({ exposedName, inputSchema }: ListedTool): ReadSchema<JsonObject> {
  const jsonSchema = readCheckedSchema(inputSchema)
  return { jsonSchema, parse: createSchemaParse(exposedName, jsonSchema) }
}

/** The user's policy, and a question in any case where the tool is not what it was. */
function createApproval(listed: ListedTool, { connection, pins }: ToolParts): ApprovalFunction<JsonObject> {
  const { approval = 'never' } = connection.server.options
  return async (input: JsonObject, context: ApprovalContext) => {
    const now = connection.listing().tools.get(listed.name) ?? listed
    if (pins.hasChanged(now))
      return (
        `The MCP server ${cleanLine(connection.server.name, 64)} has changed the description or the input schema of this tool since it was ` +
        `first listed. It says now: ${cleanLine(now.description, 300)}`
      )
    if (typeof approval === 'function') return await approval(input, context)
    return approval === 'always'
  }
}

function refuseGone(name: string, server: string, names: readonly string[]): CallVerdict {
  const near = nearestNames(name, names, 3)
  const hint = near.length === 0 ? '' : ` The nearest are ${near.join(', ')}.`
  const text = `The MCP server ${server} does not offer the tool ${name} any more. Nothing was run.${hint}`
  return { kind: 'refuse', outcome: 'unknown_tool', text }
}

/** Throws a `ToolError` with the server's words if it says that the tool failed. */
export async function toCallContent(
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
export function createPins(known: Readonly<Record<string, string>>): PinnedTools {
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
