import type { CallToolRequest, CallToolResult, RequestOptions, Task } from '@modelcontextprotocol/client'
import type { Json } from '@tallystick/core/vocabulary'
import { ToolError } from '../../execution/tool-error.ts'
import type { ListedTool } from '../listing/listed-tool.ts'
import { withoutAnySecrets, withoutSecrets } from '../listing/result-content.ts'
import { cleanLine, cleanText } from '../text/clean-text.ts'
import { callFailureOf } from './call-failure.ts'
import type { McpConnection } from './connection.ts'
import type { OpenedClient } from './open-client.ts'
import type { SharedParts } from './shared-parts.ts'
import { noTimeoutMs, pause } from './waiting.ts'

/** Milliseconds between two questions for the state of a task, where its server does not say how many. */
const defaultPollMs = 1_000
/** Whatever a server says, it is not asked more often. */
const leastPollMs = 50
/** Lost connections in a row, without an answer in between, after which a task is in doubt. */
const maxLosses = 5
/** Milliseconds that a server has to take a cancel, once no caller waits for the task. */
const cancelMs = 5_000

/** What following a task needs. */
export interface TaskParts {
  readonly connection: McpConnection
  readonly shared: SharedParts
  readonly signal: AbortSignal
  /** The longest time without a sign of life of the server, in milliseconds. */
  readonly quietMs: number
  /** How long the server should keep the task, in milliseconds. */
  readonly totalMs: number
  /** The server is at work; `data` where it says something new. */
  readonly onReport: (data?: Json) => void
}

/** Whether a server takes calls of a tool only as tasks, which it works on after it has answered. */
export function runsAsTask({ raw }: ListedTool, { client }: OpenedClient): boolean {
  const isRequired = raw.execution?.taskSupport === 'required'
  return isRequired && client.getServerCapabilities()?.tasks?.requests?.tools?.call !== undefined
}

/**
 * Calls a tool as a task (revision 2025-11-25), asks for its state until it is over, and returns its result. A connection that
 * is lost meanwhile is made again, and the task asked for there. Rejects like a call, with `ToolError` of the outcome
 * `interrupted` where the server does not know the task any more.
 */
export async function callAsTask(
  params: CallToolRequest['params'],
  opened: OpenedClient,
  parts: TaskParts,
): Promise<CallToolResult> {
  const task = await createdTask(params, opened, parts)
  const { signal } = parts
  let current = opened
  try {
    return await followed(task, opened, parts, (next) => (current = next))
  } finally {
    if (signal.aborted) cancelTask(task.taskId, current, parts)
  }
}

/** Creates a task. Where the signal aborts first, a task that is created all the same is cancelled. */
async function createdTask(
  params: CallToolRequest['params'],
  opened: OpenedClient,
  parts: TaskParts,
): Promise<Task> {
  const { shared, signal, totalMs } = parts
  signal.throwIfAborted()
  // Aborted later than the signal: without its answer a task cannot be cancelled.
  const late = new AbortController()
  let cancelTimer = (): void => {}
  const creating = opened.client.request(
    { method: 'tools/call', params: { ...params, task: { ttl: totalMs } } },
    shared.sdk.specTypeSchemas.CreateTaskResult,
    { timeout: noTimeoutMs, signal: late.signal },
  )
  const abandon = (): void => {
    cancelTimer = shared.timers.schedule(cancelMs, () => late.abort(signal.reason))
    void creating
      .then(({ task }) => cancelTask(task.taskId, opened, parts))
      .catch(() => {})
      .finally(cancelTimer)
  }
  return await new Promise<Task>((resolve, reject) => {
    const abort = (): void => {
      abandon()
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', abort, { once: true })
    creating
      .then(({ task }) => resolve(task), reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Follows a task over lost connections. */
async function followed(
  task: Task,
  from: OpenedClient,
  parts: TaskParts,
  onReopened: (opened: OpenedClient) => void,
): Promise<CallToolResult> {
  const { connection, shared, signal } = parts
  let opened = from
  let losses = 0
  for (;;) {
    try {
      return await settled(task, opened, parts, () => (losses = 0))
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ToolError) throw error
      const failure = callFailureOf(error, shared)
      if (failure.kind === 'answered' || failure.kind === 'unauthorized') throw forgotten(error, parts)
      if (++losses > maxLosses) throw forgotten(error, parts)
      if (failure.kind === 'unknown_session') connection.replace(opened)
    }
    await pause(pollMs(task, parts), shared.timers, signal)
    signal.throwIfAborted()
    opened = await connection.ready(signal).catch((error: unknown) => {
      signal.throwIfAborted()
      throw forgotten(error, parts)
    })
    onReopened(opened)
  }
}

/** Asks for the state of a task until it is over, or its result has come. */
async function settled(
  created: Task,
  { client }: OpenedClient,
  parts: TaskParts,
  onAnswer: () => void,
): Promise<CallToolResult> {
  const { shared, signal, onReport } = parts
  const { specTypeSchemas } = shared.sdk
  const { taskId } = created
  const options: RequestOptions = { timeout: noTimeoutMs, signal }
  const woken = new AbortController()
  let result: Promise<CallToolResult> | undefined
  const ask = (): Promise<CallToolResult> => {
    const asked = resultOf(client, taskId, parts)
    const wake = (): void => woken.abort()
    asked.then(wake, wake)
    return asked
  }
  let reported = ''
  for (let task = created; ;) {
    const saying = `${task.status} ${task.statusMessage ?? ''}`
    onReport(saying === reported ? undefined : stateOf(task, parts))
    reported = saying
    if (task.status === 'cancelled') {
      throw new ToolError('The server cancelled the task of this call. A part of it may have happened.')
    }
    // A server hands out its questions to the user on the way of the result.
    if (task.status !== 'working') result ??= ask()
    if (result !== undefined && (task.status === 'completed' || task.status === 'failed')) return await result
    await pause(pollMs(task, parts), shared.timers, AbortSignal.any([signal, woken.signal]))
    signal.throwIfAborted()
    if (result !== undefined && woken.signal.aborted) return await result
    task = await client.request(
      { method: 'tasks/get', params: { taskId } },
      specTypeSchemas.GetTaskResult,
      options,
    )
    onAnswer()
  }
}

async function resultOf(
  client: OpenedClient['client'],
  taskId: string,
  { shared: { sdk }, signal, connection }: TaskParts,
): Promise<CallToolResult> {
  try {
    return await client.request(
      { method: 'tasks/result', params: { taskId } },
      sdk.specTypeSchemas.CallToolResult,
      { timeout: noTimeoutMs, signal },
    )
  } catch (error) {
    const failure = callFailureOf(error, { sdk })
    if (failure.kind !== 'answered') throw error
    throw new ToolError(cleanText(withoutAnySecrets(failure.text, connection.server.secrets), 8_000))
  }
}

/** Asks a server to stop a task that no caller waits for. */
function cancelTask(taskId: string, { client }: OpenedClient, { shared: { sdk } }: TaskParts): void {
  void client
    .request({ method: 'tasks/cancel', params: { taskId } }, sdk.specTypeSchemas.CancelTaskResult, {
      timeout: cancelMs,
    })
    .catch(() => {})
}

/** A server says how often it wants to be asked; it is asked often enough to be heard of in time. */
function pollMs({ pollInterval = defaultPollMs }: Task, { quietMs }: TaskParts): number {
  return Math.max(leastPollMs, Math.min(pollInterval, Math.floor(quietMs / 2)))
}

function stateOf({ status, statusMessage }: Task, { connection }: TaskParts): Json {
  if (statusMessage === undefined) return { status }
  const { secrets } = connection.server
  // Struck out before it is cut, since a cut secret is not recognised.
  return { status, message: cleanLine(withoutSecrets(statusMessage, secrets), 500) }
}

function forgotten(error: unknown, { connection: { server } }: TaskParts): ToolError {
  const why = error instanceof Error ? error.message : String(error)
  const shown = cleanLine(withoutAnySecrets(why, server.secrets), 300)
  return new ToolError(
    `The MCP server ${server.name} began this call as a task and does not say what became of it (${shown}). It may have taken effect: find out before you ask for it again.`,
    { outcome: 'interrupted' },
  )
}
