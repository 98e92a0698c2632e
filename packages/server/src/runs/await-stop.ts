import type { RunState } from '@tallystick/core'
import { caughtUp, changesOf } from '@tallystick/core/kit'
import { evolve, isSuspended } from '@tallystick/core/machine'
import type { StreamHost } from '../stream/followed-stream.ts'
import type { SharedReads } from '../stream/shared-reads.ts'

/** The state of a run after a wait, and whether it has stopped: done, or suspended. */
export interface Awaited {
  readonly state: RunState
  readonly isStopped: boolean
}

/** Waits until a run stops, whichever process drives it, or until the time is over. */
export async function awaitStop(
  reads: SharedReads,
  state: RunState,
  { waitMs, stream, signal }: { waitMs: number; stream: StreamHost; signal: AbortSignal },
): Promise<Awaited> {
  if (hasStopped(state) || waitMs === 0) return { state, isStopped: hasStopped(state) }
  const changes = changesOf(reads.forReader(), state.runId, { after: state.seq })
  const end = (): void => void changes.return()
  const stopTimer = stream.clock.schedule(waitMs, end)
  stream.stopping.addEventListener('abort', end)
  signal.addEventListener('abort', end)
  let now = state
  try {
    for await (const event of changes) {
      if (event !== caughtUp) now = evolve(now, event)
      // Only after the last recorded event: what follows at once may show that the run does not wait.
      else if (hasStopped(now)) break
    }
  } finally {
    stopTimer()
    stream.stopping.removeEventListener('abort', end)
    signal.removeEventListener('abort', end)
  }
  return { state: now, isStopped: hasStopped(now) }
}

function hasStopped(state: RunState): boolean {
  return state.phase === 'done' || isSuspended(state)
}
