import { textContent } from '../../machine/messages/outcome-text.ts'
import type { Call } from '../../machine/state/state.ts'
import { oneValue } from '../output/one-value.ts'
import type { Host } from '../../ports/clock.ts'
import type { CallContext, Tool, ToolRun } from '../../ports/tool.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { Outcome, ResultPart } from '../../vocabulary/model/content.ts'
import { idempotencyKeyOf } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { faultOf } from '../../vocabulary/values/schema.ts'
import { answerInTime, late } from './answer-in-time.ts'
import { reconciliationSchema, toolSignalSchema } from '../../vocabulary/signals/signal-schema.ts'
import type { Reconciliation, Retryable, Signal, ToolSignal } from '../../vocabulary/signals/signal.ts'
import { textOfError } from '../../vocabulary/values/error-text.ts'
import { attemptTime } from './attempt-time.ts'
import { GuardedSubscriber } from './guarded-subscriber.ts'
import { StopRequest } from './stop-request.ts'

type Post = (signal: Signal) => void

/** What an ending may say beside its outcome and content. */
type More = Retryable & { readonly projected?: readonly ResultPart[] }

/** A running tool: the runtime can ask it to stop, and can give it up. */
export interface RunningTool {
  cancel(reason: string): void
  abandon(): void
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
  const { call, context, host, graceMs = 0, tool = missingTool(call.name) } = start
  const attempt = call.attempts
  const { toolCallId } = context
  const { clock, report } = host
  const startedAt = clock.now()
  const stopRequest = new StopRequest((error) =>
    report(error, `The tool ${call.name} threw when it was cancelled`),
  )
  let ended = false
  let timedOut = false

  const leave = (): void => {
    ended = true
    time.stop()
    subscriber.unsubscribe()
  }
  const end = (outcome: Outcome, content: readonly ResultPart[], more: More = {}): void => {
    if (ended) return
    leave()
    const durationMs = clock.now() - startedAt
    post({ type: 'tool_ended', toolCallId, attempt, outcome, content, durationMs, ...more })
  }
  const fail = (text: string, more?: Retryable): void => end('failed', textContent('failed', text), more)
  /** What is said of an attempt that the tool has not ended as its port asks. */
  const again: Retryable = call.retry ? { retryable: true } : {}
  const onSignal = (signal: ToolSignal): void => {
    if (ended) return
    const fault = faultOf(toolSignalSchema, signal)
    if (signal?.type === 'tool_progressed') {
      time.onReport()
      // Progress decides nothing: a report that cannot be kept is no reason to lose the result.
      if (!fault) post({ type: 'tool_progressed', toolCallId, attempt, data: signal.data })
      return
    }
    if (fault) return fail(breachOf(signal, fault))
    if (signal.type === 'tool_deferred') {
      leave()
      const { externalId, deadlineMs } = signal
      return post({
        type: 'tool_deferred',
        toolCallId,
        attempt,
        externalId,
        ...omitUndefined({ deadlineMs }),
      })
    }
    if (!reportable.has(signal.outcome)) {
      return fail(`The tool reported the outcome ${signal.outcome}, which is not its to give.`)
    }
    const { outcome, content, projected, retryable, retryAfterMs } = signal
    if (timedOut && outcome === 'cancelled') return end('timed_out', content, again)
    end(outcome, content, omitUndefined({ projected, retryable, retryAfterMs }))
  }
  const subscriber = new GuardedSubscriber<ToolSignal>(
    {
      next: onSignal,
      error: (error: unknown) => fail(`The tool failed: ${textOfError(error)}`, again),
      complete: () => fail('The tool ended without a result.'),
    },
    (error) => report(error, `The tool ${call.name} threw when it was abandoned`),
  )
  const giveUp = (): void => end('timed_out', textContent('timed_out'), again)
  const timeOut = (reason: string): void => {
    timedOut = true
    stopRequest.ask(reason)
    // A write is at work until it has ended: the next one must not begin beside it.
    if (call.effect === 'read' || graceMs === 0) giveUp()
    else if (!ended) time.last(graceMs, giveUp)
  }
  const time = attemptTime(clock, tool, timeOut)
  const given = { input: call.input, attempt, idempotencyKey: idempotencyKeyOf(context.runId, toolCallId) }
  try {
    const isFollowed = subscriber.follow(tool.run({ ...context, ...given, cancelled$: stopRequest.reason$ }))
    if (!isFollowed) fail(`The tool broke its contract: its run answered no Observable. ${mayHaveActed}`)
  } catch (error) {
    fail(`The tool failed: ${textOfError(error)}`, again)
  }
  return { cancel: (reason) => stopRequest.ask(reason), abandon: leave }
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
  } catch {
    // A failed reconcile leaves the call in doubt: the finding stays unknown.
  }
  post({ type: 'call_reconciled', toolCallId, finding })
}
