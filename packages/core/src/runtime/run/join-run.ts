import { LedgerConflictError } from '../../vocabulary/errors.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import type { UserMessage } from '../../vocabulary/model/content.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Ledger } from '../../ports/ledger.ts'
import { isEndedBefore } from '../../memory-ledger/append-rules.ts'
import { busySession, keptInput } from '../reading/busy-run.ts'
import { takenInput, type Waiting } from '../reading/follow-run.ts'
import type { HubRegistry } from '../drive/coordinator-registry.ts'
import { isInInbox, recordedInput } from './joined-input.ts'
import { stateOf } from '../reading/load-state.ts'
import type { RunHub } from '../drive/run-coordinator.ts'
import { lastOf } from '../session/session.ts'

/** What the last run of a session is given. */
export interface JoiningInput {
  readonly message: UserMessage
  /** What a retry of the sender names the input by. */
  readonly inputId?: string | undefined
  readonly quietMs?: number | undefined
  /** Begins the next run of the session with the input: the run that was joined has ended without showing it. */
  readonly beginNext: () => void
}

/** Input on its way into a run of a session. */
interface Joining extends JoiningInput {
  readonly waiting: Waiting
  readonly hubs: HubRegistry
  /** The input's key in the inbox, and its receipt on record. */
  readonly receipt: string
}

/**
 * Gives input to the run of a session that is under way, and answers it once that run has shown the input or is suspended
 * with it; `undefined` where none is under way, or where it ended without showing it: then the input is the next run's.
 * Input of an id that is on record is not sent again. Rejects with a `LedgerConflictError` where the run was interrupted.
 */
export async function joinedRun(
  waiting: Waiting,
  hubs: HubRegistry,
  sessionId: string,
  input: JoiningInput,
): Promise<RunHub | undefined> {
  const { ledger } = waiting
  const { inputId, quietMs } = input
  const before = inputId === undefined ? undefined : await recordedInput(ledger, sessionId, inputId)
  if (before?.shown) return followedHub(hubs, before.state, quietMs)
  const last = await lastOf(ledger, sessionId)
  const state = last && (await stateOf(ledger, last.runId))
  if (state === undefined || state.phase === 'done') return undefined
  const receipt = inputId ?? hubs.hubOf(state.runId).newReceipt()
  const joining = { ...input, waiting: { ...waiting, quietMs }, hubs, receipt }
  try {
    if (!(await isSent(joining, state))) return undefined
    const taken = await takenInput(state, joining.waiting, receipt)
    if (taken === undefined) return undefined
    const hub = followedHub(hubs, taken.state, quietMs)
    if (!taken.shown) beginWhenUnshown(hub, joining)
    return hub
  } catch (error) {
    throw await namingKept(error, ledger, state, receipt)
  }
}

/** Leaves the input in the run's inbox, once; answers `false` where the run has ended or takes no input any more. */
async function isSent({ hubs, message, receipt, waiting }: Joining, state: RunState): Promise<boolean> {
  const { runId } = state
  const hub = hubs.hubOf(runId)
  const command = { type: 'steer', message, receipt } as const
  if (state.pendingInputs.some((input) => input.receipt === receipt)) return true
  if (!(await isInInbox(waiting.ledger, runId, receipt)) && (hub.driving || isSuspended(state))) {
    try {
      // A run that is being cancelled takes no input: the next one begins when it has ended.
      await hub.send(command, receipt)
    } catch (error) {
      if (!isOvertaken(error)) throw error
    }
    return true
  }
  const isDriven = await hubs.isDriven(runId)
  if (isDriven === false && !isSuspended(state)) throw busySession(state, isDriven)
  try {
    await hub.leave(command, receipt)
    return true
  } catch (error) {
    if (isEndedBefore(error)) return false
    throw error
  }
}

/** The error of a join, which names the input where the run's inbox keeps it. */
async function namingKept(
  error: unknown,
  ledger: Ledger,
  { runId }: RunState,
  receipt: string,
): Promise<unknown> {
  const isConflict = error instanceof LedgerConflictError && error.kind === 'session'
  return isConflict && (await isInInbox(ledger, runId, receipt)) ? keptInput(error, receipt) : error
}

function followedHub(hubs: HubRegistry, state: RunState, quietMs: number | undefined): RunHub {
  const hub = hubs.hubOf(state.runId)
  hub.follow(state, quietMs)
  return hub
}

/** Begins the next run of the session when a suspended run that has taken the input ends without having shown it. */
function beginWhenUnshown(hub: RunHub, { receipt, beginNext }: Joining): void {
  const stopWatching = hub.elsewhere.watch()
  const subscription = hub.live.subscribe({
    next: (event) => {
      if (event.type !== 'input_settled' || event.receipt !== receipt) return
      leave()
      if (!event.delivered) beginNext()
    },
    error: () => leave(),
  })
  const leave = (): void => {
    stopWatching()
    subscription.unsubscribe()
  }
}

/** Another process took the run over in the moment in which this one did, and reads its inbox now. */
function isOvertaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && (error.kind === 'epoch' || error.kind === 'seq')
}
