// A workflow of Temporal, for its own bundler: it runs in a sandbox, where time comes from the history.
import {
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { SignalDefinition } from '@temporalio/workflow'
import type { Wake } from '../engine.ts'
import { mergeWakes } from './merge-wakes.ts'

/** The activities that the workflow has a worker do. */
export interface RunActivities {
  readonly driveRun: (wake: Wake) => Promise<void>
}

const wakeSignal: SignalDefinition<[Wake]> = defineSignal('wake')

/** Drives a run whenever it is woken, and ends when nothing is to come; the next wake starts it again. */
export async function tallystickRun(carried?: Wake): Promise<void> {
  let pending = carried
  setHandler(wakeSignal, (wake) => {
    pending = pending ? mergeWakes(pending, wake) : wake
  })
  // Every start brings a wake, but the signal may come after the first lines.
  await condition(() => pending !== undefined)
  while (pending) {
    const { at = 0, priority } = pending
    const waitMs = at - Date.now()
    if (waitMs > 0) {
      await condition(() => (pending?.at ?? 0) < at, waitMs)
    } else {
      const wake = pending
      pending = undefined
      await proxyActivities<RunActivities>({
        heartbeatTimeout: '30 seconds',
        startToCloseTimeout: '24 hours',
        retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
        ...(priority !== undefined && {
          priority: { priorityKey: Math.min(Math.max(1, 3 - Math.trunc(priority)), 5) },
        }),
      }).driveRun(wake)
    }
    if (pending && workflowInfo().continueAsNewSuggested) await continueAsNew<typeof tallystickRun>(pending)
  }
}
