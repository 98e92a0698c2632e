import type { Outcome } from '@tallystick/core/vocabulary'
import type { RunSummary } from '@tallystick/ledger'

/** Endings of a call other than success, the worst first. */
const byWeight: readonly Outcome[] = [
  ...(['interrupted', 'timed_out', 'failed', 'unknown_tool', 'invalid_input', 'denied'] as const),
  ...(['limit_reached', 'cancelled', 'skipped', 'repeated'] as const),
]

/** The worst thing that happened in a run, such as `pay failed ×2`; empty where everything went well. */
export function worstText({ calls, failedAttempts }: Pick<RunSummary, 'calls' | 'failedAttempts'>): string {
  for (const outcome of byWeight) {
    const [worst] = calls.filter((call) => call.outcome === outcome).toSorted((a, b) => b.count - a.count)
    if (worst) return `${worst.name} ${outcome}${timesText(worst.count)}`
  }
  return failedAttempts === 0 ? '' : `model call failed${timesText(failedAttempts)}`
}

function timesText(count: number): string {
  return count === 1 ? '' : ` ×${count}`
}
