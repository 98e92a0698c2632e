import type { Message, RunId } from '@tallystick/core'
import type { Json, ToolCallId, ToolEffect, ToolRun, ToolSignal } from '@tallystick/core/vocabulary'
import { Observable, type Observer, Subscriber, type Subscription, type Unsubscribable } from 'rxjs'
import { jsonOf } from '../content/json-value.ts'
import { copyOfInput } from '../input/input-copy.ts'
import { explainIssues } from '../input/arguments.ts'
import type { ReadSchema } from '../input/schema.ts'
import { isDeferral, type KeptDeferral } from './deferral.ts'
import { LazyAbort, withSignal } from './lazy-abort.ts'
import { resultEnding, type ResultRules } from './result.ts'
import { againAfter, type Again, type RetryOptions } from './retry.ts'
import { cancellationOf, cancelledUnstarted, type Ending, failureOf, textEnding } from './outcome.ts'

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
  return new Reports(body, call)
}

/** What a call reports. A subscriber, as the runtime is one, follows it without the detours that RxJS takes for observers of any kind. */
class Reports<Input, Context> extends Observable<ToolSignal> {
  readonly body: ToolBody<Input, Context>
  readonly call: ToolRun<Context>

  constructor(body: ToolBody<Input, Context>, call: ToolRun<Context>) {
    super(startCall)
    this.body = body
    this.call = call
  }

  override subscribe(
    observerOrNext?: Partial<Observer<ToolSignal>> | ((value: ToolSignal) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    if (!(observerOrNext instanceof Subscriber))
      return super.subscribe(observerOrNext as (value: ToolSignal) => void, error, complete)
    observerOrNext.add(startCall.call(this, observerOrNext))
    return observerOrNext
  }
}

/** One function for all calls: thousands may be under way at once. */
function startCall(this: Observable<ToolSignal>, subscriber: Subscriber<ToolSignal>): Unsubscribable {
  const { body, call } = this as Reports<unknown, unknown>
  const execution = new Execution(body, call, subscriber)
  void execution.start()
  return execution
}

/** A call that is under way. Thousands may be at once: what only some tools use is made when they ask for it. */
class Execution<Input, Context> implements Unsubscribable {
  readonly #body: ToolBody<Input, Context>
  readonly #call: ToolRun<Context>
  readonly #subscriber: Subscriber<ToolSignal>
  readonly #abort = new LazyAbort()
  readonly #cancellation: Subscription
  #ended = false

  constructor(body: ToolBody<Input, Context>, call: ToolRun<Context>, subscriber: Subscriber<ToolSignal>) {
    this.#body = body
    this.#call = call
    this.#subscriber = subscriber
    this.#cancellation = call.cancelled$.subscribe({
      next: (reason) => this.#abort.abort(reason),
      // The caller that could stop the call is gone: better to stop than to run unattended.
      error: () => this.#abort.abort('its cancellation failed'),
    })
  }

  async start(): Promise<void> {
    const ending = await this.#ending()
    this.#ended = true
    this.#subscriber.next(
      'externalId' in ending ? { type: 'tool_deferred', ...ending } : { type: 'tool_ended', ...ending },
    )
    this.#subscriber.complete()
  }

  /** No caller listens any more. */
  unsubscribe(): void {
    this.#cancellation.unsubscribe()
    if (!this.#ended) this.#abort.abort('no caller waits for this call any more')
  }

  async #ending(): Promise<(Ending & Again) | KeptDeferral> {
    const body = this.#body
    const { input } = this.#call
    try {
      // Never at once: the caller has its subscription before the tool reports anything.
      const parsed = await body.schema.parse(copyOfInput(input))
      if (!parsed.ok) {
        const tool = { name: body.name, inputSchema: body.schema.jsonSchema }
        return textEnding('invalid_input', explainIssues(tool, input, parsed.issues))
      }
      if (this.#abort.reason !== undefined) return cancelledUnstarted(this.#abort.reason)
      const returned = await body.execute(parsed.value, this.#context())
      if (isDeferral(returned)) return returned
      const ending = resultEnding(returned, body)
      return ending instanceof Promise ? await ending : ending
    } catch (thrown) {
      if (this.#abort.reason !== undefined) return cancellationOf(this.#abort.reason, body.effect, thrown)
      return { ...failureOf(thrown), ...againAfter(body.retry, thrown) }
    }
  }

  #context(): ToolContext<Context> {
    const { runId, turn, toolCallId, attempt, idempotencyKey, context, messages = noMessages } = this.#call
    const given = {
      progress: (data: Json) => {
        if (!this.#subscriber.closed)
          this.#subscriber.next({ type: 'tool_progressed', data: progressData(data) })
      },
      idempotencyKey,
      runId,
      turn,
      toolCallId,
      attempt,
      context,
      messages,
    }
    return Object.freeze(withSignal(given, this.#abort))
  }
}

function noMessages(): readonly Message[] {
  return []
}

/** Progress is for people who watch: what JSON cannot carry is named in its place, and does not end the call. */
function progressData(data: unknown): Json {
  try {
    return jsonOf(data)
  } catch (error) {
    return `(a progress report was left out: ${error instanceof Error ? error.message : 'it is no JSON'})`
  }
}
