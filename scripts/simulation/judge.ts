import type { Ledger, RuntimeEvent } from '@tallystick/core'
import { replayRun } from '@tallystick/replay'
import type { FleetViolation } from '@tallystick/testkit'
import { createReplayAgents } from './agents.ts'

const agentNamed = createReplayAgents()

/** Replays a run of a world: law 14. Without its content it cannot be driven again: `removed`. */
export async function findReplayFault(
  ledger: Ledger,
  events: readonly RuntimeEvent[],
): Promise<FleetViolation | 'removed' | undefined> {
  if (events.some(({ removed }) => removed !== undefined)) return 'removed'
  const [first] = events as readonly [RuntimeEvent, ...RuntimeEvent[]]
  const { runId } = first
  const withContext = first.type === 'run_started' && first.withContext === true
  const contexts = withContext ? [{ context: { owner: first.owner } }, {}] : [{}]
  const divergences = await Promise.all(
    contexts.map(async (context) => (await replayRun(ledger, runId, agentNamed, context)).divergence),
  )
  const divergence = divergences.find((each) => each !== undefined)
  if (divergence === undefined) return undefined
  const differences = JSON.stringify(divergence.differences)
  return { law: 14, what: `run ${runId} replays otherwise at event ${divergence.seq}: ${differences}` }
}
