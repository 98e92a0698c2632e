import type { Ledger, RunId, RunState, RuntimeEvent, Tally } from '@tallystick/core'
import { evolve, RunNotFoundError, tallyOf } from '@tallystick/core'

/** A run, read once from its first event to one of the others. */
export interface RunReading {
  readonly state: RunState
  readonly tally: Tally
  /** Those that had the conversation, in order: the one that the run was started with, and each that took over. */
  readonly agents: readonly string[]
  /** The runs that do the work of a call, in order; in a fork also those that another run has had do it. */
  readonly children: readonly RunId[]
}

/** Reads a run up to its event `toSeq`, or to the last. Rejects with `RunNotFoundError` where there is none. */
export async function readRun(ledger: Ledger, runId: RunId, toSeq?: number): Promise<RunReading> {
  let state: RunState | undefined
  const halves: RuntimeEvent[] = []
  const agents: string[] = []
  const children = new Set<RunId>()
  for await (const event of ledger.read(runId, toSeq === undefined ? {} : { toSeq })) {
    state = evolve(state, event)
    if (event.type === 'tool_request_ready' || event.type === 'tool_result') halves.push(event)
    if (event.type === 'run_started') agents.push(event.agent)
    if (event.type === 'agent_handed_off') agents.push(event.to)
    if (event.type === 'tool_started' && event.child !== undefined) children.add(event.child)
  }
  if (state === undefined) throw new RunNotFoundError(runId)
  return { state, tally: tallyOf(halves), agents, children: [...children] }
}
