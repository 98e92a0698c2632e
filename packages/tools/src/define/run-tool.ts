import type { Message, RunId } from '@tallystick/core'
import {
  copyJson,
  omitUndefined,
  option,
  type Schema,
  requireOptions,
  type Retryable,
} from '@tallystick/core/internal'
import {
  defaultRetryPolicy,
  type GivenRetryPolicy,
  type Json,
  type RetryPolicy,
  type ToolCallId,
  type ToolEffect,
  type ToolRun,
  type ToolSignal,
  type ToolSpending,
} from '@tallystick/core/vocabulary'
import { Observable, type Subscriber } from 'rxjs'
import { toJson } from './content.ts'
import { explainIssues } from './input-issues.ts'
import {
  endCancelled,
  endUnstarted,
  type Ending,
  endThrown,
  endReturned,
  type ResultRules,
  createTextEnding,
  ToolError,
} from './outcome.ts'
import type { ReadSchema } from './schema.ts'

const { anyFunction, fields, maybe, numberFrom, valueThat } = option

/** The context of a running tool. */
export interface ToolContext<Context = unknown> {
  /**
   * Aborts when the tool should stop: the run was cancelled, or the call's time is over. Pass it to the functions that
   * you call.
   */
  readonly signal: AbortSignal
  /** Reports progress to observers of the run; the model does not see it. Does nothing once the call has ended. */
  readonly progress: (data: Json) => void
  /**
   * The same at every attempt of this call, and different for every other call. Pass it to the service that the tool
   * changes.
   */
  readonly idempotencyKey: string
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** 1, or more when the call is tried again after a failure, or started again after a crash. */
  readonly attempt: number
  /** The value that the application gave this run, such as the signed-in user or a database handle. Never recorded. */
  readonly context: Context
  /**
   * Returns the conversation as the agent's model has it, up to the message that asked for this call; empty if the
   * call belongs to none.
   */
  readonly messages: () => readonly Message[]
  /**
   * Returns what the run's limits leave for models that the tool calls itself: a field that is absent has no limit. Or names
   * the limit that leaves too little. Ask before each model call.
   */
  readonly left: NonNullable<ToolRun['left']>
  /**
   * Charges the run for one model call that the tool has made: its tokens, its cost, and a turn. The ledger holds it. `costUsd`
   * is needed where the run has a limit on cost.
   */
  readonly spend: (spent: ToolSpending) => void
}

/** The part of a tool that running one call needs. */
export interface ToolBody<Input, Context> {
  readonly name: string
  readonly effect: ToolEffect
  readonly schema: ReadSchema<Input>
  readonly execute: (input: Input, context: ToolContext<Context>) => unknown
  readonly retry?: RetryOptions | undefined
  readonly output?: ResultRules['output']
  readonly toModel?: ResultRules['toModel']
}

/**
 * TOOL EXECUTION: one start of one call. Subscribing starts it; it reports progress, then exactly one ending (or that
 * the call is settled later), and completes, whatever the tool does. It never errors. Unsubscribing aborts the tool's
 * signal, and nothing that the tool does afterwards counts.
 */
export function runTool<Input, Context>(
  body: ToolBody<Input, Context>,
  call: ToolRun<Context>,
): Observable<ToolSignal> {
  return new Observable((subscriber) => {
    const abort = new AbortController()
    let reason: string | undefined
    const stop = (why: string): void => {
      reason ??= why
      abort.abort(new DOMException(reason || 'The call was cancelled', 'AbortError'))
    }
    const cancellation = call.cancelled$.subscribe({
      next: stop,
      // The caller that could stop the call is gone: better to stop than to run unattended.
      error: () => stop('its cancellation failed'),
    })
    let hasEnded = false
    const execute = async (): Promise<(Ending & Retryable) | KeptDeferral> => {
      try {
        // Never at once: the caller has its subscription before the tool reports anything.
        const parsed = await body.schema.parse(copyJson(call.input))
        if (!parsed.ok) {
          const tool = { name: body.name, inputSchema: body.schema.jsonSchema }
          return createTextEnding('invalid_input', explainIssues(tool, call.input, parsed.issues))
        }
        if (reason !== undefined) return endUnstarted(reason)
        const returned = await body.execute(parsed.value, createContext(call, subscriber, abort.signal))
        return isDeferral(returned) ? returned : await endReturned(returned, body)
      } catch (thrown) {
        if (reason !== undefined) return endCancelled(reason, body.effect, thrown)
        return { ...endThrown(thrown), ...decideRetry(body.retry, thrown) }
      }
    }
    void execute().then((ending) => {
      hasEnded = true
      subscriber.next(
        'externalId' in ending ? { type: 'tool_deferred', ...ending } : { type: 'tool_ended', ...ending },
      )
      subscriber.complete()
    })
    return () => {
      cancellation.unsubscribe()
      if (!hasEnded) stop('no caller waits for this call any more')
    }
  })
}

function createContext<Context>(
  { runId, turn, toolCallId, attempt, idempotencyKey, context, ...call }: ToolRun<Context>,
  subscriber: Subscriber<ToolSignal>,
  signal: AbortSignal,
): ToolContext<Context> {
  return Object.freeze({
    signal,
    progress(data: Json) {
      let shown: Json
      try {
        shown = toJson(data)
      } catch (error) {
        // Progress is for people who watch: what JSON cannot carry is named in its place, and does not end the call.
        shown = `(a progress report was left out: ${error instanceof Error ? error.message : 'it is not JSON'})`
      }
      subscriber.next({ type: 'tool_progressed', data: shown })
    },
    idempotencyKey,
    runId,
    turn,
    toolCallId,
    attempt,
    context,
    messages: call.messages ?? ((): readonly Message[] => []),
    left: call.left ?? (() => ({})),
    spend: (spent: ToolSpending) => subscriber.next({ type: 'tool_progressed', data: null, spent }),
  })
}

/** How the failed calls of a tool are tried again. */
export interface RetryOptions extends GivenRetryPolicy {
  /** Attempts of one call in all, the first included. */
  readonly maxAttempts: number
  /**
   * Returns true if a call that threw this error may be made again. Default: true for all errors except a `ToolError` that is
   * not `retryable`. If it throws, the call is not tried again.
   */
  readonly when?: ((error: unknown) => boolean) | undefined
}

const made = Symbol.for('@tallystick/tools/deferral')

/** Says that an outside system carries out a call. Made by `settledLater`. */
export interface Deferral {
  /** The name of the call outside: a job's id, a ticket's number. The ledger holds it. */
  readonly externalId: string
  /** Milliseconds from now after which the call ends as timed out. Default: never. */
  readonly deadlineMs?: number | undefined
}

type KeptDeferral = Omit<Deferral, 'deadlineMs'> & { readonly deadlineMs?: number }

const deferralFields = fields<Deferral>(
  {
    externalId: valueThat(
      'what names the call outside, as text that is not empty, such as the id of a job',
      (value) => typeof value === 'string' && value !== '',
    ),
    deadlineMs: maybe(
      valueThat(
        'a number of milliseconds above 0',
        (value) => Number.isFinite(value) && (value as number) > 0,
      ),
    ),
  },
  { id: 'externalId', jobId: 'externalId', receipt: 'externalId', timeoutMs: 'deadlineMs' },
)

/**
 * Returns the result of a tool whose work continues after it returns: the run is suspended, with no process alive for
 * it, until `runtime.settle(runId, toolCallId, result)`. Pass `context.runId` and `context.toolCallId` to the code that
 * will settle it.
 */
export function settledLater(options: Deferral): Deferral {
  requireOptions('settledLater', deferralFields, options)
  const { externalId, deadlineMs } = options
  const deferral = { externalId, ...omitUndefined({ deadlineMs }) }
  Object.defineProperty(deferral, made, { value: true })
  return deferral
}

function isDeferral(value: unknown): value is KeptDeferral {
  return typeof value === 'object' && value !== null && Reflect.get(value, made) === true
}

const wait = maybe(numberFrom(0))

export const retryOptions: Schema = fields<RetryOptions>(
  {
    maxAttempts: numberFrom(1, { whole: true }),
    baseMs: wait,
    capMs: wait,
    maxRetryAfterMs: wait,
    maxTotalMs: wait,
    when: maybe(anyFunction),
  },
  {
    ...{ attempts: 'maxAttempts', retries: 'maxAttempts', maxRetries: 'maxAttempts' },
    ...{ backoffMs: 'baseMs', initialDelayMs: 'baseMs', minTimeout: 'baseMs' },
    ...{ maxBackoffMs: 'capMs', maxDelayMs: 'capMs', maxTimeout: 'capMs' },
    ...{ retryOn: 'when', shouldRetry: 'when' },
  },
)

/** The policy that a runtime keeps: data, which the ledger holds. */
export function toRetryPolicy({ when: _when, ...given }: RetryOptions): RetryPolicy {
  const { baseMs, capMs, maxRetryAfterMs } = defaultRetryPolicy
  return { baseMs, capMs, maxRetryAfterMs, maxAttempts: given.maxAttempts, ...omitUndefined(given) }
}

function decideRetry(
  retry: RetryOptions | undefined,
  thrown: unknown,
): { readonly retryable?: true; readonly retryAfterMs?: number } {
  if (retry === undefined) return {}
  try {
    const own = thrown instanceof ToolError ? thrown : undefined
    const mayRetry: unknown = retry.when ? retry.when(thrown) : (own?.retryable ?? true)
    if (mayRetry !== true) return {}
    const retryAfterMs = own?.retryAfterMs
    const isWait = Number.isFinite(retryAfterMs) && (retryAfterMs as number) >= 0
    return { retryable: true, ...(isWait && { retryAfterMs: retryAfterMs as number }) }
  } catch {
    // A rule that fails allows nothing, since its answer is unknown.
    return {}
  }
}

/**
 * Returns the `traceparent` header (W3C Trace Context) that a call sends along, so that the service which answers continues the
 * trace: `(call) => readTraceparent(ledger, call)`, with `readTraceparent` of `@tallystick/otel`. `undefined` sends none.
 */
export type ReadTraceparent = (
  call: Pick<ToolContext, 'runId' | 'toolCallId'>,
) => string | undefined | Promise<string | undefined>

/** Returns the header of a call; `undefined` if the function fails or returns another text: no trace stops a call. */
export async function askTraceparent(
  readTraceparent: ReadTraceparent | undefined,
  { runId, toolCallId }: Pick<ToolContext, 'runId' | 'toolCallId'>,
): Promise<string | undefined> {
  try {
    const given = await readTraceparent?.({ runId, toolCallId })
    return given !== undefined && /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(given)
      ? given
      : undefined
  } catch {
    return undefined
  }
}
