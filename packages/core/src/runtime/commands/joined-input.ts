import type { RunState } from '../../machine/state.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import { stateOf } from '../reading/load-state.ts'

/** Whether the input of an id waits in the inbox of a run. */
export async function isInInbox(ledger: Ledger, runId: RunId, inputId: string): Promise<boolean> {
  return (await ledger.inbox(runId)).some(({ key }) => key === inputId)
}

/**
 * The run of a session that has taken the input of an id last, and whether it has shown it to its model: a run shows what
 * it began with. `undefined` where none is on record.
 */
export async function recordedInput(
  ledger: Ledger,
  sessionId: string,
  inputId: string,
): Promise<{ readonly state: RunState; readonly shown: boolean } | undefined> {
  let found: { readonly runId: RunId; readonly shown: boolean } | undefined
  for await (const event of ledger.find({ sessionId, types: ['input_received', 'input_settled'] })) {
    if (event.type === 'input_received' && event.receipt === inputId) {
      found = { runId: event.runId, shown: event.delivery === 'start' }
    }
    if (event.type === 'input_settled' && event.receipt === inputId) {
      found = { runId: event.runId, shown: event.delivered }
    }
  }
  const state = found && (await stateOf(ledger, found.runId))
  return found && state && { state, shown: found.shown }
}
