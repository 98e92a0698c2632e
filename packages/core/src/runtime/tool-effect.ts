import { ReplaySubject, type Subscription } from 'rxjs'
import { textContent } from '../machine/outcome-text.ts'
import type { Call } from '../machine/state.ts'
import type { Cancel, Clock } from '../ports/clock.ts'
import type { CallContext, Tool } from '../ports/tool.ts'
import type { Outcome, ResultPart } from '../vocabulary/content.ts'
import { idempotencyKeyOf } from '../vocabulary/ids.ts'
import type { Reconciliation, Signal } from '../vocabulary/signal.ts'

type Post = (signal: Signal) => void

/** A tool that runs: it can be asked to stop, and it can be left behind. */
export interface RunningTool {
  cancel(reason: string): void
  abandon(): void
}

/** One start of one call. */
export interface ToolStart {
  readonly tool: Tool
  readonly call: Call
  readonly context: CallContext
  readonly clock: Clock
}

/** Outcomes that a tool itself may report; the others are the runtime's to give. */
const reportable: ReadonlySet<Outcome> = new Set([
  'success',
  'failed',
  'timed_out',
  'cancelled',
  'invalid_input',
])

/**
 * Runs one call of a tool and posts what it reports. Whatever the tool does, exactly one `tool_ended` is posted, last;
 * unless it is abandoned first, after which nothing that it does is heard.
 */
export function startTool({ tool, call, context, clock }: ToolStart, post: Post): RunningTool {
  const attempt = call.attempts
  const { toolCallId } = context
  const startedAt = clock.now()
  const cancelled$ = new ReplaySubject<string>(1)
  let ended = false
  let subscription: Subscription | undefined
  let stopTimer: Cancel | undefined

  const leave = (): void => {
    ended = true
    stopTimer?.()
    subscription?.unsubscribe()
  }
  const end = (outcome: Outcome, content: readonly ResultPart[]): void => {
    if (ended) return
    leave()
    post({ type: 'tool_ended', toolCallId, attempt, outcome, content, durationMs: clock.now() - startedAt })
  }
  if (tool.timeoutMs !== undefined) {
    stopTimer = clock.schedule(tool.timeoutMs, () => {
      cancelled$.next('The tool took too long.')
      end('timed_out', textContent('timed_out'))
    })
  }
  const idempotencyKey = idempotencyKeyOf(context.runId, toolCallId)
  try {
    subscription = tool
      .run({ ...context, input: call.input, attempt, idempotencyKey, cancelled$ })
      .subscribe({
        next: (signal) => {
          if (ended) return
          if (signal.type === 'tool_progressed') post({ ...signal, toolCallId, attempt })
          else if (reportable.has(signal.outcome)) end(signal.outcome, signal.content)
          else
            end(
              'failed',
              textContent(
                'failed',
                `The tool reported the outcome ${signal.outcome}, which is not its to give.`,
              ),
            )
        },
        error: (error: unknown) =>
          end('failed', textContent('failed', `The tool failed: ${textOfError(error)}`)),
        complete: () => end('failed', textContent('failed', 'The tool ended without a result.')),
      })
    // It may have ended before the subscription was there to be ended.
    if (ended) subscription.unsubscribe()
  } catch (error) {
    end('failed', textContent('failed', `The tool failed: ${textOfError(error)}`))
  }
  return { cancel: (reason) => cancelled$.next(reason), abandon: leave }
}

/** Asks the outside world about a call in doubt, and posts one `call_reconciled`. */
export async function reconcileCall(
  tool: Tool | undefined,
  call: Call,
  context: CallContext,
  post: Post,
): Promise<void> {
  const { toolCallId } = context
  const idempotencyKey = idempotencyKeyOf(context.runId, toolCallId)
  const run = { ...context, input: call.input, attempt: call.attempts, idempotencyKey }
  let finding: Reconciliation = { state: 'unknown' }
  try {
    finding = (await tool?.reconcile?.(run)) ?? finding
  } catch {
    // Whoever cannot be asked leaves the call in doubt: the finding stays unknown.
  }
  post({ type: 'call_reconciled', toolCallId, finding })
}

/** What an error says, bounded. */
export function textOfError(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text.slice(0, 2_000)
}
