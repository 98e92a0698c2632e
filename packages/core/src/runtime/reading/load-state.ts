import { RunFold } from '../../machine/fold/run-fold.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** What a ledger knows of a run, up to an event if given; `undefined` for a run that is not there. */
export async function stateOf(ledger: Ledger, runId: RunId, toSeq?: number): Promise<RunState | undefined> {
  const fold = new RunFold()
  const range = toSeq === undefined ? {} : { toSeq }
  for await (const event of ledger.read(runId, range)) fold.add(event)
  return fold.state
}
