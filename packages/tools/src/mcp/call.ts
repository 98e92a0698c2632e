import type { CallToolRequest, CallToolResult, RequestOptions, Task } from '@modelcontextprotocol/client'
import type { Json, JsonObject, ToolEffect } from '@tallystick/core/vocabulary'
import { ToolError } from '../define/outcome.ts'
import type { OpenedClient, SharedParts } from './client.ts'
import type { McpConnection } from './connection.ts'
import {
  type CallDeadline,
  startDeadline,
  type CallFailure,
  readCallFailure,
  createFailureError,
  type ModelBudget,
  noTimeoutMs,
  pause,
  waitUnlessAborted,
  createUnreachable,
} from './deadline.ts'
import type { ListedTool } from './listing.ts'
import { cleanLine, cleanText, withoutAnySecrets, withoutSecrets } from './secrets.ts'

const defaultTimeoutMs = 60_000
/** The default time limit of a call, in milliseconds. */
export const defaultMaxTotalMs = 600_000

/**
 * Works with a server within the time of a call. Rejects as the work does, with the reason of the caller's signal when that
 * aborts, and with a `ToolError` when the time is over, which ends in what `describeLate` returns.
 */
export async function runWithinCallTime<Result>(
  connection: McpConnection,
  { timers }: Pick<SharedParts, 'timers'>,
  caller: { readonly signal?: AbortSignal; readonly budget?: ModelBudget | undefined },
  describeLate: () => string,
  work: (deadline: CallDeadline, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { options, name } = connection.server
  const { timeoutMs = defaultTimeoutMs, maxTotalMs = defaultMaxTotalMs } = options
  const deadline = startDeadline(timers, timeoutMs, maxTotalMs, caller.budget)
  connection.deadlines.add(deadline)
  try {
    return await work(deadline, AbortSignal.any([...(caller.signal ? [caller.signal] : []), deadline.signal]))
  } catch (error) {
    // The client library ends a call that was cancelled and one that took too long in the same way.
    if (caller.signal?.aborted) throw caller.signal.reason
    if (!deadline.signal.aborted) throw error
    throw new ToolError(`The MCP server ${name} did not answer in time.${describeLate()}`, {
      outcome: 'timed_out',
    })
  } finally {
    deadline.stop()
    connection.deadlines.delete(deadline)
  }
}

/** Rejects with the reason of the signal, or with a `ToolError` that says that there is no connection. */
export async function waitForClient(connection: McpConnection, signal: AbortSignal): Promise<OpenedClient> {
  try {
    return await connection.ready(signal)
  } catch {
    signal.throwIfAborted()
    throw createUnreachable(connection.server.name, connection.faults())
  }
}

/** Progress reports of one call that are passed on. */
const maxReports = 1_000

/** One call of a server's tool. */
export interface ToolCall {
  readonly tool: ListedTool
  readonly input: JsonObject
  /** `read`: a call in doubt is simply repeated, once. */
  readonly effect: ToolEffect
  readonly signal: AbortSignal
  readonly progress: (data: Json) => void
  /** Sent along, for servers that recognise a call by it. */
  readonly idempotencyKey?: string
  /** The place of the call in a trace. */
  readonly traceparent?: string | undefined
  /** The run's limits, to which the server's questions to a model are charged. */
  readonly budget?: ModelBudget
}

/** The name under which the idempotency key of a call is sent. */
const idempotencyKeyName = 'io.github.tallystick/idempotency-key'

/** How often a user is sent to an authorization page for one call. */
const maxAuthorizations = 2

/**
 * Calls a tool, and once more where the server ran nothing or only reads. Rejects with the reason of the signal when that
 * aborts, and else with a `ToolError`: `timed_out`, `interrupted` for a call in doubt, or `failed`.
 */
export async function callTool(
  call: ToolCall,
  connection: McpConnection,
  shared: SharedParts,
): Promise<CallToolResult> {
  /** The request under way may have reached the server. */
  let wasSent = false
  const describeLate = (): string =>
    wasSent
      ? ' It was asked to stop. What it was asked for may have happened all the same.'
      : ' Nothing was run: there was no connection to it.'
  return await runWithinCallTime(connection, shared, call, describeLate, async (deadline, signal) => {
    /** Removes what stood in the way. Returns true if the call can then be made again without harm. */
    const isToRepeat = async (kind: CallFailure['kind'], opened: OpenedClient, repeats: number) => {
      switch (kind) {
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
          await waitUnlessAborted(opened.authorize(), signal)
          connection.replace(opened)
          return true
        case 'in_doubt':
          return repeats === 0 && call.effect === 'read'
      }
    }

    for (let repeats = 0; ; repeats++) {
      const opened = await waitForClient(connection, signal)
      // The time of the call is the server's; that of the start is over.
      deadline.progress()
      wasSent = true
      try {
        const result = await send(call, opened, connection, shared, deadline, signal)
        connection.answered()
        return result
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ToolError) throw error
        const failure = readCallFailure(error, shared)
        if (!(await isToRepeat(failure.kind, opened, repeats)))
          throw createFailureError(failure, connection.server, connection.faults())
        wasSent = failure.kind === 'in_doubt'
      }
    }
  })
}

async function send(
  { tool, input, progress, idempotencyKey, traceparent }: ToolCall,
  opened: OpenedClient,
  connection: McpConnection,
  shared: SharedParts,
  deadline: CallDeadline,
  signal: AbortSignal,
): Promise<CallToolResult> {
  const { options } = connection.server
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
  if (isRunAsTask(tool, opened)) {
    const { timeoutMs: quietMs = defaultTimeoutMs, maxTotalMs: totalMs = defaultMaxTotalMs } = options
    return await callAsTask(params, opened, { connection, shared, signal, quietMs, totalMs, onReport })
  }
  const { outputSchema: _unchecked, ...toolDefinition } = tool.raw
  return await opened.client.callTool(params, {
    // Results are read with bounds of our own, and a server that breaks its own schema is not lost.
    toolDefinition,
    signal,
    timeout: noTimeoutMs,
    onprogress: ({ progress: done, total, message }) =>
      onReport({
        progress: done,
        ...(total !== undefined && { total }),
        ...(message !== undefined && { message: showMessage(message, connection) }),
      }),
  })
}

function showMessage(message: string, { server: { secrets } }: McpConnection): string {
  // Struck out before it is cut, since a cut secret is not recognised.
  return cleanLine(withoutSecrets(message, secrets), 500)
}

/** Milliseconds between two questions for the state of a task, where its server does not say how many. */
const defaultPollMs = 1_000
/** Whatever a server says, it is not asked more often. */
const leastPollMs = 50
/** Lost connections in a row, without an answer in between, after which a task is in doubt. */
const maxLosses = 5
/** Milliseconds that a server has to take a cancel, once no caller waits for the task. */
const cancelMs = 5_000

interface TaskParts {
  readonly connection: McpConnection
  readonly shared: SharedParts
  readonly signal: AbortSignal
  /** The longest time without a sign of life of the server, in milliseconds. */
  readonly quietMs: number
  /** How long the server should keep the task, in milliseconds. */
  readonly totalMs: number
  /** The server is at work; `data` if it reports something new. */
  readonly onReport: (data?: Json) => void
}

/** True if a server takes calls of a tool only as tasks, which it works on after it has answered. */
function isRunAsTask({ raw }: ListedTool, { client }: OpenedClient): boolean {
  const isRequired = raw.execution?.taskSupport === 'required'
  return isRequired && client.getServerCapabilities()?.tasks?.requests?.tools?.call !== undefined
}

/**
 * Calls a tool as a task (revision 2025-11-25), asks for its state until it is over, and returns its result. A connection that
 * is lost during it is made again, and the task asked for there. Rejects like a call, with `ToolError` of the outcome
 * `interrupted` where the server does not know the task any more.
 */
async function callAsTask(
  params: CallToolRequest['params'],
  opened: OpenedClient,
  parts: TaskParts,
): Promise<CallToolResult> {
  const { connection, shared, signal } = parts
  const task = await createTask(params, opened, parts)
  let current = opened
  let losses = 0
  try {
    for (;;) {
      try {
        return await settleTask(task, current, parts, () => (losses = 0))
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ToolError) throw error
        const { kind } = readCallFailure(error, shared)
        const isOver = kind === 'answered' || kind === 'unauthorized' || ++losses > maxLosses
        if (isOver) throw createForgotten(error, parts)
        if (kind === 'unknown_session') connection.replace(current)
      }
      await pause(readPollMs(task, parts), shared.timers, signal)
      signal.throwIfAborted()
      current = await connection.ready(signal).catch((error: unknown) => {
        signal.throwIfAborted()
        throw createForgotten(error, parts)
      })
    }
  } finally {
    if (signal.aborted) cancelTask(task.taskId, current, parts)
  }
}

/** Creates a task. Where the signal aborts first, a task that is created all the same is cancelled. */
async function createTask(
  params: CallToolRequest['params'],
  opened: OpenedClient,
  parts: TaskParts,
): Promise<Task> {
  const { shared, signal, totalMs } = parts
  signal.throwIfAborted()
  // Aborted later than the signal: without its answer a task cannot be cancelled.
  const late = new AbortController()
  const creating = opened.client.request(
    { method: 'tools/call', params: { ...params, task: { ttl: totalMs } } },
    shared.sdk.specTypeSchemas.CreateTaskResult,
    { timeout: noTimeoutMs, signal: late.signal },
  )
  const abandon = (): void => {
    const cancelTimer = shared.timers.schedule(cancelMs, () => late.abort(signal.reason))
    void creating
      .then(({ task }) => cancelTask(task.taskId, opened, parts))
      .catch(() => {})
      .finally(cancelTimer)
  }
  signal.addEventListener('abort', abandon, { once: true })
  try {
    return (await waitUnlessAborted(creating, signal)).task
  } finally {
    signal.removeEventListener('abort', abandon)
  }
}

/** Asks for the state of a task until it is over, or its result has come. */
async function settleTask(
  created: Task,
  { client }: OpenedClient,
  parts: TaskParts,
  onAnswer: () => void,
): Promise<CallToolResult> {
  const { shared, signal, onReport, connection } = parts
  const { specTypeSchemas } = shared.sdk
  const { taskId } = created
  const options: RequestOptions = { timeout: noTimeoutMs, signal }
  const woken = new AbortController()
  let result: Promise<CallToolResult> | undefined
  let reported = ''
  for (let task = created; ;) {
    const saying = `${task.status} ${task.statusMessage ?? ''}`
    const { status, statusMessage } = task
    const message = statusMessage === undefined ? {} : { message: showMessage(statusMessage, connection) }
    onReport(saying === reported ? undefined : { status, ...message })
    reported = saying
    if (task.status === 'cancelled') {
      throw new ToolError('The server cancelled the task of this call. A part of it may have happened.')
    }
    // A server hands out its questions to the user on the way of the result.
    if (task.status !== 'working' && result === undefined) {
      result = readResult(client, taskId, parts)
      const wake = (): void => woken.abort()
      result.then(wake, wake)
    }
    if (result !== undefined && (task.status === 'completed' || task.status === 'failed')) return await result
    await pause(readPollMs(task, parts), shared.timers, AbortSignal.any([signal, woken.signal]))
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

async function readResult(
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
    const failure = readCallFailure(error, { sdk })
    if (failure.kind !== 'answered') throw error
    throw new ToolError(cleanText(withoutAnySecrets(failure.text, connection.server.secrets), 8_000))
  }
}

function cancelTask(taskId: string, { client }: OpenedClient, { shared: { sdk } }: TaskParts): void {
  void client
    .request({ method: 'tasks/cancel', params: { taskId } }, sdk.specTypeSchemas.CancelTaskResult, {
      timeout: cancelMs,
    })
    .catch(() => {})
}

/** A server says how often it wants to be asked; it is asked often enough to be heard of in time. */
function readPollMs({ pollInterval = defaultPollMs }: Task, { quietMs }: TaskParts): number {
  return Math.max(leastPollMs, Math.min(pollInterval, Math.floor(quietMs / 2)))
}

function createForgotten(error: unknown, { connection: { server } }: TaskParts): ToolError {
  const why = error instanceof Error ? error.message : String(error)
  const shown = cleanLine(withoutAnySecrets(why, server.secrets), 300)
  return new ToolError(
    `The MCP server ${server.name} began this call as a task and does not say how it ended (${shown}). It may have taken effect: find out before you ask for it again.`,
    { outcome: 'interrupted' },
  )
}
