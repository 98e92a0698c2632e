import { isSuspended } from '../machine/effects-of.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { UserMessage } from '../vocabulary/content.ts'
import type { HubRegistry } from './hub-registry.ts'
import { stateOf } from './load-state.ts'
import type { RunHub } from './run-hub.ts'
import { lastOf } from './session.ts'

/** Gives input to the run of a session that is under way; `undefined` where none is. */
export async function joinedRun(
  ledger: Ledger,
  hubs: HubRegistry,
  sessionId: string,
  message: UserMessage,
): Promise<RunHub | undefined> {
  const last = await lastOf(ledger, sessionId)
  const state = last && (await stateOf(ledger, last.runId))
  if (state === undefined || state.phase === 'done') return undefined
  const hub = hubs.hubOf(state.runId)
  const receipt = hub.newReceipt()
  const command = { type: 'steer', message, receipt } as const
  if (hub.driving || isSuspended(state)) {
    // Who is told that the run has ended meanwhile starts the next one.
    return (await hub.send(command)).accepted ? hub : undefined
  }
  await hub.leave(command)
  hub.follow(state)
  return hub
}
