import type { EventOf } from '../../events/event.ts'
import { evolve } from '../../machine/evolve.ts'
import type { RunState } from '../../machine/state.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'

/** What a ledger knows of a run, up to an event if given; `undefined` for a run that is not there. */
export async function stateOf(ledger: Ledger, runId: RunId, toSeq?: number): Promise<RunState | undefined> {
  let state: RunState | undefined
  const range = toSeq === undefined ? {} : { toSeq }
  for await (const event of ledger.read(runId, range)) state = evolve(state, event)
  return state
}

/** Returns the first event of a run, which says what it is and where it came from; `undefined` for a run that the ledger lacks. */
export async function startOf(
  ledger: Pick<Ledger, 'read'>,
  runId: RunId,
): Promise<EventOf<'run_started'> | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    return event.type === 'run_started' ? event : undefined
  }
  return undefined
}
