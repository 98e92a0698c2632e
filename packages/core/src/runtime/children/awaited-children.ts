import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import type { RunState } from '../../machine/state/state.ts'
import { parkedChildCalls } from '../../machine/state/state-views.ts'
import { settlingOf, type ChildRuns } from './child-runs.ts'

/** Who listens to the child runs that a run is parked on. */
interface Listener {
  readonly children: ChildRuns
  /** Whether child runs that are under way are to be taken over. */
  readonly takesOver: boolean
  /** Gets what a child run ended in. */
  readonly post: (settling: ReturnType<typeof settlingOf>) => void
  /** Whether somebody asks something of the run itself. */
  readonly isAsked: () => boolean
  /** Resolves when that may have changed. */
  readonly next: () => Promise<void>
}

/**
 * Hears of child runs that ended while their calls were being parked, or while nobody drove the run. One that goes on
 * may take long: whoever asks something of the run meanwhile is heard first.
 */
export async function hearParkedChildren(
  state: RunState,
  { children, takesOver, post, isAsked, next }: Listener,
): Promise<void> {
  const rests = Promise.all(
    parkedChildCalls(state).map(async ({ toolCallId }) => {
      const ending = await children.endingOf(childRunIdOf(state.runId, toolCallId), takesOver)
      if (ending) post(settlingOf(toolCallId, ending))
    }),
  ).then(() => 'rest' as const)
  // Whoever was interrupted comes back, and finds the children as they are then.
  rests.catch(() => {})
  while (!isAsked()) {
    if ((await Promise.race([rests, next()])) === 'rest') return
  }
}
