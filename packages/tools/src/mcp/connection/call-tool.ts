import type { CallToolResult, Progress } from '@modelcontextprotocol/client'
import type { Json, JsonObject, KnownSecrets, ToolEffect } from '@tallystick/core/vocabulary'
import { ToolError } from '../../execution/tool-error.ts'
import type { ListedTool } from '../listing/listed-tool.ts'
import { withoutSecrets } from '../listing/result-content.ts'
import { cleanLine } from '../text/clean-text.ts'
import { type CallDeadline, callDeadline } from './call-deadline.ts'
import { callAsTask, runsAsTask } from './call-task.ts'
import { type CallFailure, callFailureOf, failureError, unreachable } from './call-failure.ts'
import type { McpConnection } from './connection.ts'
import type { OpenedClient } from './open-client.ts'
import type { SharedParts } from './shared-parts.ts'
import { noTimeoutMs, resultOrAborted } from './waiting.ts'

const defaultTimeoutMs = 60_000
/** The longest that a call takes where nothing else is said. */
export const defaultMaxTotalMs = 600_000
/** Progress reports of one call that are passed on. */
const maxReports = 1_000

/** One call of a server's tool. */
export interface ToolCall {
  readonly tool: ListedTool
  readonly input: JsonObject
  /** `read`: what is in doubt is simply asked again, once. */
  readonly effect: ToolEffect
  readonly signal: AbortSignal
  readonly progress: (data: Json) => void
  /** Sent along, for servers that recognise a call by it. */
  readonly idempotencyKey?: string
  /** The place of the call in a trace. */
  readonly traceparent?: string | undefined
}

/** The name under which the idempotency key of a call is sent. */
const idempotencyKeyName = 'io.github.tallystick/idempotency-key'

/**
 * Calls a tool, and once more where the server ran nothing or only reads. Rejects with the reason of the signal when that
 * aborts, and else with a `ToolError`: `timed_out`, `interrupted` for a call in doubt, or `failed`.
 */
export async function callTool(
  call: ToolCall,
  connection: McpConnection,
  shared: SharedParts,
): Promise<CallToolResult> {
  const { options, name } = connection.server
  const { timeoutMs = defaultTimeoutMs, maxTotalMs = defaultMaxTotalMs } = options
  const deadline = callDeadline(shared.timers, timeoutMs, maxTotalMs)
  connection.deadlines.add(deadline)
  const signal = AbortSignal.any([call.signal, deadline.signal])
  const tried = { wasSent: false }
  try {
    return await attempts(call, { connection, shared, deadline, tried }, signal)
  } catch (error) {
    // The client library ends a call that was cancelled and one that took too long in the same way.
    if (call.signal.aborted) throw call.signal.reason
    if (deadline.signal.aborted) throw lateError(name, tried.wasSent)
    throw error
  } finally {
    deadline.stop()
    connection.deadlines.delete(deadline)
  }
}

interface Attempts {
  readonly connection: McpConnection
  readonly shared: SharedParts
  readonly deadline: CallDeadline
  /** Whether what is under way may have reached the server. */
  readonly tried: { wasSent: boolean }
}

async function attempts(
  call: ToolCall,
  { connection, shared, deadline, tried }: Attempts,
  signal: AbortSignal,
): Promise<CallToolResult> {
  for (let repeats = 0; ; repeats++) {
    const opened = await connected(connection, signal)
    // The time of the call is the server's; that of the start is over.
    deadline.progress()
    tried.wasSent = true
    try {
      const result = await send(call, opened, { connection, shared, deadline }, signal)
      connection.answered()
      return result
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ToolError) throw error
      const failure = callFailureOf(error, shared)
      if (!(await isToRepeat(failure, call, { connection, opened, repeats, signal }))) {
        throw failureError(failure, connection.server, connection.faults())
      }
      tried.wasSent = failure.kind === 'in_doubt'
    }
  }
}

/** How often a user is sent to an authorization page for one call. */
const maxAuthorizations = 2

interface Tried {
  readonly connection: McpConnection
  readonly opened: OpenedClient
  readonly repeats: number
  readonly signal: AbortSignal
}

/** Whether a call can be made again without harm, once what stood in its way is done away with. */
async function isToRepeat(
  failure: CallFailure,
  { effect }: ToolCall,
  { connection, opened, repeats, signal }: Tried,
): Promise<boolean> {
  switch (failure.kind) {
    case 'answered':
      connection.answered()
      return false
    case 'unsent':
      connection.lost(opened)
      return false
    case 'unknown_session':
      connection.replace(opened)
      return repeats === 0
    case 'unauthorized':
      if (opened.authorize === undefined || repeats >= maxAuthorizations) return false
      await resultOrAborted(opened.authorize(), signal)
      connection.replace(opened)
      return true
    case 'in_doubt':
      return repeats === 0 && effect === 'read'
  }
}

async function connected(connection: McpConnection, signal: AbortSignal): Promise<OpenedClient> {
  try {
    return await connection.ready(signal)
  } catch {
    signal.throwIfAborted()
    throw unreachable(connection.server.name, connection.faults())
  }
}

async function send(
  { tool, input, progress, idempotencyKey, traceparent }: ToolCall,
  opened: OpenedClient,
  { connection, shared, deadline }: Omit<Attempts, 'tried'>,
  signal: AbortSignal,
): Promise<CallToolResult> {
  const { options, secrets } = connection.server
  let reports = 0
  const onReport = (data?: Json): void => {
    deadline.progress()
    if (data !== undefined && ++reports <= maxReports) progress(data)
  }
  const meta = {
    ...(idempotencyKey !== undefined && { [idempotencyKeyName]: idempotencyKey }),
    ...(traceparent !== undefined && { traceparent }),
  }
  const params = {
    name: tool.name,
    arguments: { ...input },
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  }
  if (runsAsTask(tool, opened)) {
    const { timeoutMs: quietMs = defaultTimeoutMs, maxTotalMs: totalMs = defaultMaxTotalMs } = options
    return await callAsTask(params, opened, { connection, shared, signal, quietMs, totalMs, onReport })
  }
  const { outputSchema: _unchecked, ...toolDefinition } = tool.raw
  return await opened.client.callTool(params, {
    // Results are read with bounds of our own, and a server that breaks its own schema is not lost.
    toolDefinition,
    signal,
    timeout: noTimeoutMs,
    onprogress: (report) => onReport(progressData(report, secrets)),
  })
}

function progressData({ progress, total, message }: Progress, secrets: KnownSecrets): Json {
  return {
    progress: finite(progress),
    ...(total !== undefined && { total: finite(total) }),
    // Struck out before it is cut, since a cut secret is not recognised.
    ...(typeof message === 'string' && { message: cleanLine(withoutSecrets(message, secrets), 500) }),
  }
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}

function lateError(name: string, wasSent: boolean): ToolError {
  const what = wasSent
    ? 'It was asked to stop. What it was asked for may have happened all the same.'
    : 'Nothing was run: there was no connection to it.'
  return new ToolError(`The MCP server ${name} did not answer in time. ${what}`, { outcome: 'timed_out' })
}
