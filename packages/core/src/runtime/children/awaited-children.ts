import type { RunState } from '../../machine/state.ts'
import { callsAwaitingChild } from '../../machine/calls.ts'
import { settleCommandOf } from './child-ending.ts'
import type { ChildRuns } from './child-runs.ts'

/** A run that awaits child runs. */
interface AwaitingParent {
  readonly children: ChildRuns
  /** Whether child runs that are under way are to be taken over. */
  readonly withChildren: boolean
  /** What the application gave the run. */
  readonly context: unknown
  /** Takes the command that settles a call with the ending of its child run. */
  readonly post: (settling: ReturnType<typeof settleCommandOf>) => void
  /** Whether a command for the run itself has come in. */
  readonly isAsked: () => boolean
  /** Resolves when that may have changed. */
  readonly next: () => Promise<void>
}

/**
 * Posts the endings of child runs that ended while their calls were being deferred, or while no process drove the run.
 * A child run may take long: a command for the run itself ends the wait.
 */
export async function postEndedChildren(
  state: RunState,
  { children, withChildren, context, post, isAsked, next }: AwaitingParent,
): Promise<void> {
  if (isAsked()) return
  const endings = Promise.all(
    callsAwaitingChild(state).map(async ({ toolCallId }) => {
      const ending = await children.resumedEnding(state, toolCallId, { withChildren, context })
      if (ending) post(settleCommandOf(toolCallId, ending))
    }),
  ).then(() => 'all' as const)
  // After an interruption the run asks again, and finds the children as they are then.
  while ((await Promise.race([endings, next()])) !== 'all') {
    if (isAsked()) return
  }
}
