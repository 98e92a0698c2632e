import { LedgerConflictError } from '../errors.ts'
import { isSuspended } from '../machine/controller.ts'
import type { UserMessage } from '../vocabulary/content.ts'
import type { RunState } from '../machine/state.ts'
import { isEndedBefore } from './append-rules.ts'
import { busySession } from './busy-run.ts'
import { takenInput, type Waiting } from './follow-run.ts'
import type { HubRegistry } from './hub-registry.ts'
import { stateOf } from './load-state.ts'
import type { RunHub } from './run-hub.ts'
import { lastOf } from './session.ts'

/** What the last run of a session is given. */
interface JoiningInput {
  readonly message: UserMessage
  readonly quietMs?: number | undefined
}

/**
 * Gives input to the run of a session that is under way, and answers it once that run has taken the input; `undefined`
 * where none is under way, or where it ended without taking it: then the input is the next run's. Rejects with a
 * `LedgerConflictError` where the run was interrupted.
 */
export async function joinedRun(
  waiting: Waiting,
  hubs: HubRegistry,
  sessionId: string,
  { message, quietMs }: JoiningInput,
): Promise<RunHub | undefined> {
  const { ledger } = waiting
  const last = await lastOf(ledger, sessionId)
  const state = last && (await stateOf(ledger, last.runId))
  if (state === undefined || state.phase === 'done') return undefined
  const hub = hubs.hubOf(state.runId)
  const receipt = hub.newReceipt()
  const command = { type: 'steer', message, receipt } as const
  const patient = { ...waiting, quietMs }
  if (hub.driving || isSuspended(state)) {
    try {
      if ((await hub.send(command)).accepted) return hub
    } catch (error) {
      if (!isOvertaken(error)) throw error
      return await followedHub(hubs, await takenInput(state, patient, receipt), quietMs)
    }
    // A run that is being cancelled takes no input: the next one begins when it has ended.
    await takenInput(state, patient, receipt)
    return undefined
  }
  const isDriven = await hubs.isDriven(state.runId)
  if (isDriven === false) throw busySession(state, isDriven)
  try {
    await hub.leave(command)
  } catch (error) {
    if (isEndedBefore(error)) return undefined
    throw error
  }
  return await followedHub(hubs, await takenInput(state, patient, receipt), quietMs)
}

async function followedHub(
  hubs: HubRegistry,
  taken: RunState | undefined,
  quietMs: number | undefined,
): Promise<RunHub | undefined> {
  if (taken === undefined) return undefined
  const hub = hubs.hubOf(taken.runId)
  hub.follow(taken, quietMs)
  return hub
}

/** Another process took the run over in the moment in which this one did, and reads its inbox now. */
function isOvertaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && (error.kind === 'epoch' || error.kind === 'seq')
}
