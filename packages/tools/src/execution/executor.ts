import type { Message, RunId } from '@tallystick/core'
import type { Json, ToolCallId, ToolEffect, ToolRun, ToolSignal } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'
import { jsonOf } from '../content/json-value.ts'
import { copyOfInput } from '../input/input-copy.ts'
import { explainIssues } from '../input/arguments.ts'
import type { ReadSchema } from '../input/schema.ts'
import { type Deferral, isDeferral } from './deferral.ts'
import { LazyAbort } from './lazy-abort.ts'
import { resultEnding, type ResultRules } from './result.ts'
import { againAfter, type Again, type RetryOptions } from './retry.ts'
import { cancellationOf, cancelledUnstarted, type Ending, failureOf, textEnding } from './outcome.ts'

/** What a running tool is lent. */
export interface ToolContext<Context = unknown> {
  /** Aborts when the tool should stop: the run was cancelled, or the call's time is over. Hand it to what you call. */
  readonly signal: AbortSignal
  /** Reports progress to observers of the run; the model does not see it. Does nothing once the call has ended. */
  readonly progress: (data: Json) => void
  /** The same at every attempt of this call, and of no other call. Hand it to what you change things with. */
  readonly idempotencyKey: string
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** 1, or more when the call is tried again after a failure, or started again after a crash. */
  readonly attempt: number
  /** What the application gave this run, such as the signed-in user or a database handle. Never recorded. */
  readonly context: Context
  /**
   * Returns the conversation as the agent's model has it, up to the message that asked for this call; empty where the
   * call belongs to none.
   */
  readonly messages: () => readonly Message[]
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
 * the call is settled later), and
 * completes, whatever the tool does. It never errors. Unsubscribing aborts the tool's signal, and nothing that the
 * tool does afterwards counts.
 */
export function runTool<Input, Context>(
  body: ToolBody<Input, Context>,
  call: ToolRun<Context>,
): Observable<ToolSignal> {
  return new Observable((subscriber) => {
    const abort = new LazyAbort()
    const cancel = (reason: string): void => abort.abort(reason)
    const cancellation = call.cancelled$.subscribe({
      next: (reason) => cancel(reason),
      // The caller that could stop the call is gone: better to stop than to run unattended.
      error: () => cancel('its cancellation failed'),
    })
    const progress = (data: Json): void => {
      if (!subscriber.closed) subscriber.next({ type: 'tool_progressed', data: progressData(data) })
    }
    const { runId, turn, toolCallId, attempt, idempotencyKey } = call
    const context: ToolContext<Context> = Object.freeze({
      get signal() {
        return abort.signal
      },
      progress,
      idempotencyKey,
      runId,
      turn,
      toolCallId,
      attempt,
      context: call.context,
      messages: call.messages ?? (() => []),
    })

    const endingOfCall = async (): Promise<(Ending & Again) | Deferral> => {
      try {
        const parsed = await body.schema.parse(copyOfInput(call.input))
        if (!parsed.ok) {
          const tool = { name: body.name, inputSchema: body.schema.jsonSchema }
          return textEnding('invalid_input', explainIssues(tool, call.input, parsed.issues))
        }
        if (abort.reason !== undefined) return cancelledUnstarted(abort.reason)
        const returned = await body.execute(parsed.value, context)
        return isDeferral(returned) ? returned : await resultEnding(returned, body)
      } catch (thrown) {
        if (abort.reason !== undefined) return cancellationOf(abort.reason, body.effect, thrown)
        return { ...failureOf(thrown), ...againAfter(body.retry, thrown) }
      }
    }
    let ended = false
    const start = async (): Promise<void> => {
      const ending = await endingOfCall()
      ended = true
      subscriber.next(
        'externalId' in ending ? { type: 'tool_deferred', ...ending } : { type: 'tool_ended', ...ending },
      )
      subscriber.complete()
    }
    void start()
    return () => {
      cancellation.unsubscribe()
      if (!ended) cancel('no caller waits for this call any more')
    }
  })
}

/** Progress is for people who watch: what JSON cannot carry is named in its place, and does not end the call. */
function progressData(data: unknown): Json {
  try {
    return jsonOf(data)
  } catch (error) {
    return `(a progress report was left out: ${error instanceof Error ? error.message : 'it is no JSON'})`
  }
}
