import { LedgerConflictError } from '../../values/errors.ts'
import { childRunIdOf } from '../../values/ids.ts'
import { graceEndOf } from '../../machine/budget.ts'
import { textContent } from '../../machine/calls.ts'
import type { Call, ExecutingState } from '../../machine/state.ts'
import type { Cancel, Clock } from '../../values/host.ts'
import type { ChildTotals } from '../../events/event.ts'
import { omitUndefined } from '../../values/json.ts'
import type { Signal } from '../../events/signals.ts'
import type { ChildEnding, ChildStop } from './child-ending.ts'
import type { ChildRuns } from './child-runs.ts'
import { textOfError } from '../../values/text.ts'

/** The start of a call whose work an agent does. */
export interface ChildStart {
  readonly state: ExecutingState
  readonly call: Call
  readonly children: ChildRuns
  /** What the application gave the parent. */
  readonly context: unknown
  readonly clock: Clock
}

/**
 * Drives the run that does the work of a call, and posts how it stopped: `tool_ended` when it has ended, `tool_deferred`
 * when it waits for something from outside. A call that waits already, or that the cancel of its run found in doubt, is
 * only stopped. It may post more than once: the machine obeys the first report of a call that is at work.
 */
export function startChild(
  { state, call, children, context, clock }: ChildStart,
  post: (signal: Signal) => void,
): { readonly cancel: (reason: string) => void; readonly stop: () => void } {
  const { toolCallId, attempts: attempt, status } = call
  const startedAt = clock.now()
  let stopTimer: Cancel | undefined
  const end = (
    ending: Pick<ChildEnding, 'outcome' | 'content'> & { readonly child?: ChildTotals | undefined },
  ): void => {
    const { child, ...rest } = ending
    post({
      type: 'tool_ended',
      toolCallId,
      attempt,
      ...rest,
      ...omitUndefined({ child }),
      durationMs: clock.now() - startedAt,
    })
  }
  const deferCall = (): void => {
    const externalId = childRunIdOf(state.runId, toolCallId)
    post({ type: 'tool_deferred', toolCallId, attempt, externalId })
  }
  let isCancelled = false
  const listen = async (stopped: Promise<ChildStop>, isOfCancel: boolean): Promise<void> => {
    // From the cancel on, only the cancel reports that the child waits: a call deferred now would cancel it once more.
    const deferUnlessCancelled = (): void => {
      if (!isCancelled || isOfCancel) deferCall()
    }
    try {
      const found = await stopped
      if (found.kind === 'waits') return deferUnlessCancelled()
      if (found.kind === 'never_begun')
        return end({ outcome: 'cancelled', content: textContent('cancelled') })
      const { outcome, content, totals: child } = found
      end({ outcome, content, child })
    } catch (error) {
      // Another process drives the child now, and settles the call when it ends.
      if (error instanceof LedgerConflictError) return deferUnlessCancelled()
      const text = `The work could not be done: ${textOfError(error)}`
      const child = await driven.totals({ isUnderWay: false })
      end({ outcome: 'failed', content: textContent('failed', text), child })
    }
  }
  /** The grace time is over: the call ends, though its child run may still use what it was granted. */
  const leave = async (): Promise<void> => {
    const text = 'The work was told to stop, and had not stopped in time. It may have had effects.'
    end({
      outcome: 'cancelled',
      content: textContent('cancelled', text),
      child: await driven.totals({ isUnderWay: true }),
    })
  }
  const driven = children.drive(state, call, context)
  if (status === 'started') void listen(driven.begin(), false)
  return {
    cancel(reason) {
      if (isCancelled) return
      isCancelled = true
      const now = clock.now()
      stopTimer = clock.schedule(graceEndOf(state, now) - now, () => void leave())
      void listen(driven.cancel(reason), true)
    },
    stop: () => stopTimer?.(),
  }
}
