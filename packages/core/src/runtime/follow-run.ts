import { audit } from '../machine/invariants.ts'
import { isSuspended } from '../machine/effects-of.ts'
import type { RunState } from '../machine/state.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'

/** Follows a run that another process drives, and answers the state in which it has ended. */
export function endOf(ledger: Ledger, from: RunState): Promise<RunState> {
  return followRun(ledger, from, ({ phase }) => phase === 'done')
}

/** Follows a run that another process drives, and answers the state in which it rests: ended, or suspended. */
export function restOf(
  ledger: Ledger,
  from: RunState,
  hear: (event: RuntimeEvent) => void,
): Promise<RunState> {
  return followRun(ledger, from, (state) => state.phase === 'done' || isSuspended(state), hear)
}

async function followRun(
  ledger: Ledger,
  from: RunState,
  until: (state: RunState) => boolean,
  hear: (event: RuntimeEvent) => void = () => {},
): Promise<RunState> {
  let state = from
  let changed = true
  let wake: (() => void) | undefined
  let failure: { readonly error: unknown } | undefined
  const hints = ledger.changes(from.runId).subscribe({
    next: () => {
      changed = true
      wake?.()
    },
    error: (error: unknown) => {
      failure = { error }
      wake?.()
    },
  })
  try {
    for (;;) {
      if (failure) throw failure.error
      if (!changed) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      changed = false
      for await (const event of ledger.read(from.runId, { fromSeq: state.seq + 1 })) {
        state = audit(state, event)
        hear(event)
      }
      if (until(state)) return state
    }
  } finally {
    hints.unsubscribe()
  }
}
