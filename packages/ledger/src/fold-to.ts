import {
  ConfigurationError,
  evolve,
  RunNotFoundError,
  type Ledger,
  type RunId,
  type RunState,
} from '@tallystick/core'

/**
 * The state of a run right after its event `seq`, or after its last one: time travel, without any call. It is the
 * state that the live run had there.
 *
 * Rejects with `RunNotFoundError` where the ledger has no such run, with `ConfigurationError` where the run has no
 * such event, and with what `evolve` throws where an event is not legal.
 */
export async function foldTo(ledger: Ledger, runId: RunId, seq?: number): Promise<RunState> {
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const toSeq = seq ?? head.seq
  if (!Number.isInteger(toSeq) || toSeq < 1 || toSeq > head.seq) {
    throw new ConfigurationError(
      `Run ${runId} has the events 1 to ${head.seq}, so there is no state at seq ${toSeq}. Name one of them.`,
    )
  }
  let state: RunState | undefined
  for await (const event of ledger.read(runId, { toSeq })) state = evolve(state, event)
  if (state === undefined) throw new RunNotFoundError(runId)
  return state
}
