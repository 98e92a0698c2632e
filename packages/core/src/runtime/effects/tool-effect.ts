import { textContent } from '../../machine/calls.ts'
import type { Call } from '../../machine/state.ts'
import { oneValue } from '../output/one-value.ts'
import type { Observer } from 'rxjs'
import type { Host } from '../../values/host.ts'
import type { CallContext, Tool, ToolRun } from '../../tools/tool.ts'
import type { AnyContext } from '../../events/agent-definition.ts'
import type { Outcome, ResultPart } from '../../events/content.ts'
import { idempotencyKeyOf } from '../../values/ids.ts'
import { omitUndefined } from '../../values/json.ts'
import { faultOf } from '../../values/schema.ts'
import { answerInTime, late } from '../checks/answer-in-time.ts'
import {
  type Reconciliation,
  reconciliationSchema,
  type Retryable,
  type Signal,
  type ToolSignal,
  toolSignalSchema,
} from '../../events/signals.ts'
import { stackOfError, textOfError } from '../../values/text.ts'
import { AttemptTime } from './attempt-time.ts'
import { GuardedSubscriber } from './guarded-subscriber.ts'
import { StopRequest } from './stop-request.ts'

type Post = (signal: Signal) => void

/** What an ending may say beside its outcome and content. */
type More = Retryable & { readonly projected?: readonly ResultPart[]; readonly error?: string }

/** A running tool: the runtime can ask it to stop, and can give it up. */
export interface RunningTool {
  cancel(reason: string): void
  stop(): void
}

/** One start of one call. */
export interface ToolStart {
  /** Absent where the agent has no tool any more that is the one whose call was checked. */
  readonly tool: Tool | undefined
  readonly call: Call
  readonly context: CallContext<AnyContext> & Pick<ToolRun, 'messages'>
  readonly host: Pick<Host, 'clock' | 'report'>
  /** How long an overdue write may continue after it was asked to stop, in milliseconds. */
  readonly graceMs?: number
}

/** Outcomes that a tool itself may report; the others are the runtime's to give. */
const reportable: ReadonlySet<Outcome> = new Set([
  'success',
  'failed',
  'timed_out',
  'cancelled',
  'invalid_input',
  // The tool lost sight of what it had started, such as a call of a server that died.
  'interrupted',
])

/**
 * Runs one call of a tool and posts what it reports. Whatever the tool does, exactly one `tool_ended` or `tool_deferred` is posted, last;
 * unless it is abandoned first, after which nothing that it does counts.
 */
export function startTool(start: ToolStart, post: Post): RunningTool {
  return new ToolAttempt(start, post)
}

/** A call that runs. It observes the reports of its tool. Thousands may be under way at once: what only some need is made when they do. */
class ToolAttempt implements RunningTool, Observer<ToolSignal> {
  readonly #call: Call
  readonly #host: Pick<Host, 'clock' | 'report'>
  readonly #graceMs: number
  readonly #post: Post
  readonly #startedAt: number
  readonly #stopRequest: StopRequest
  readonly #time: AttemptTime
  readonly #reports: GuardedSubscriber<ToolSignal>
  #ended = false
  #timedOut = false

  constructor({ tool: own, call, context, host, graceMs = 0 }: ToolStart, post: Post) {
    const { clock, report } = host
    const tool = own ?? missingTool(call.name)
    this.#call = call
    this.#host = host
    this.#graceMs = graceMs
    this.#post = post
    this.#startedAt = clock.now()
    this.#stopRequest = new StopRequest((error) =>
      report(error, `The tool ${call.name} threw when it was cancelled`),
    )
    this.#reports = new GuardedSubscriber<ToolSignal>(this)
    this.#time = new AttemptTime(clock, tool, (reason) => this.#timeOut(reason))
    const { runId, toolCallId } = context
    const idempotencyKey = idempotencyKeyOf(runId, toolCallId)
    const cancelled$ = this.#stopRequest.reason$
    const { input, attempts: attempt } = call
    try {
      const answer = tool.run({ ...context, input, attempt, idempotencyKey, cancelled$ })
      if (!this.#reports.follow(answer))
        this.#fail(`The tool broke its contract: its run answered no Observable. ${mayHaveActed}`)
    } catch (error) {
      this.error(error)
    }
  }

  cancel(reason: string): void {
    this.#stopRequest.ask(reason)
  }

  /** Gives it up: nothing that it does counts any more. */
  stop(): void {
    this.#ended = true
    this.#time.stop()
    this.#reports.unsubscribe()
  }

  onCleanupFault(error: unknown): void {
    this.#host.report(error, `The tool ${this.#call.name} threw when it was abandoned`)
  }

  next(signal: ToolSignal): void {
    if (this.#ended) return
    const { toolCallId, attempts: attempt } = this.#call
    const fault = faultOf(toolSignalSchema, signal)
    if (signal?.type === 'tool_progressed') {
      this.#time.onReport()
      // Progress decides nothing: a report that cannot be kept is no reason to lose the result.
      if (!fault) this.#post({ type: 'tool_progressed', toolCallId, attempt, data: signal.data })
      return
    }
    if (fault) return this.#fail(breachOf(signal, fault))
    if (signal.type === 'tool_deferred') {
      this.stop()
      const { externalId, deadlineMs } = signal
      return this.#post({
        type: 'tool_deferred',
        toolCallId,
        attempt,
        externalId,
        ...omitUndefined({ deadlineMs }),
      })
    }
    if (!reportable.has(signal.outcome)) {
      return this.#fail(`The tool reported the outcome ${signal.outcome}, which is not its to give.`)
    }
    const { outcome, content, projected, retryable, retryAfterMs } = signal
    const error = 'thrown' in signal ? this.#report(signal.thrown) : undefined
    if (this.#timedOut && outcome === 'cancelled') return this.#end('timed_out', content, this.#again)
    this.#end(outcome, content, omitUndefined({ projected, retryable, retryAfterMs, error }))
  }

  error(error: unknown): void {
    if (this.#ended) return
    this.#fail(`The tool failed: ${textOfError(error)}`, { ...this.#again, error: this.#report(error) })
  }

  /** Tells the host of an exception of the tool; returns its stack for the record. */
  #report(thrown: unknown): string {
    const { name, toolCallId } = this.#call
    this.#host.report(thrown, `The tool ${name} threw (call ${toolCallId})`)
    return stackOfError(thrown)
  }

  complete(): void {
    this.#fail('The tool ended without a result.')
  }

  /** What is said of an attempt that the tool has not ended as its port asks. */
  get #again(): Retryable {
    return this.#call.retry ? { retryable: true } : {}
  }

  #fail(text: string, more?: More): void {
    this.#end('failed', textContent('failed', text), more)
  }

  #end(outcome: Outcome, content: readonly ResultPart[], more: More = {}): void {
    if (this.#ended) return
    this.stop()
    const { toolCallId, attempts: attempt } = this.#call
    const durationMs = this.#host.clock.now() - this.#startedAt
    this.#post({ type: 'tool_ended', toolCallId, attempt, outcome, content, durationMs, ...more })
  }

  #timeOut(reason: string): void {
    this.#timedOut = true
    this.#stopRequest.ask(reason)
    // A write is at work until it has ended: the next one must not begin beside it.
    const isLeft = this.#call.effect !== 'read' && this.#graceMs > 0
    if (!isLeft) this.#giveUp()
    else if (!this.#ended) this.#time.last(this.#graceMs, () => this.#giveUp())
  }

  #giveUp(): void {
    this.#end('timed_out', textContent('timed_out'), this.#again)
  }
}

/** What stands for a tool that the agent's code does not have any more. */
function missingTool(name: string): Pick<Tool, 'run' | 'timeoutMs' | 'quietMs'> {
  const text = `The tool ${name} is not there any more as it was when this call was checked. Nothing was run.`
  return {
    run: () => oneValue({ type: 'tool_ended', outcome: 'failed', content: textContent('failed', text) }),
  }
}

const mayHaveActed = 'It may have taken effect all the same.'

/** Tools may be written without a compiler; what they got wrong, the model reads. */
function breachOf(signal: ToolSignal, fault: { readonly path: string; readonly what: string }): string {
  const type = typeof signal?.type === 'string' ? signal.type : 'something'
  return `The tool broke its contract: it reported ${type} with a fault at ${fault.path}: ${fault.what}. ${mayHaveActed}`
}

/** Asks the outside world about a call in doubt, and posts one `call_reconciled`; no answer in time is no finding. */
export async function reconcileCall({ tool, call, context, host }: ToolStart, post: Post): Promise<void> {
  const { toolCallId } = context
  const idempotencyKey = idempotencyKeyOf(context.runId, toolCallId)
  const run = { ...context, input: call.input, attempt: call.attempts, idempotencyKey }
  let finding: Reconciliation = { state: 'unknown' }
  try {
    const found = await answerInTime(() => tool?.reconcile?.(run), host.clock, tool?.timeoutMs)
    if (found !== late && found !== undefined && faultOf(reconciliationSchema, found) === undefined)
      finding = found
  } catch (error) {
    // The call stays in doubt: the finding is unknown.
    host.report(error, `The tool ${call.name} failed to reconcile call ${toolCallId}`)
  }
  post({ type: 'call_reconciled', toolCallId, finding })
}
