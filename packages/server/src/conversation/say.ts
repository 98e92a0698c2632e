import { type Ledger, LedgerConflictError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { isRunDriven } from '@tallystick/core/internal'
import { toCanonicalJson, type UserMessage, type UserPart } from '@tallystick/core/vocabulary'
import { isVisible, findLastRun, type Principal, type StartHeaders } from '../http/principal.ts'
import { RefusedRequestError } from '../http/problem.ts'
import type { FollowedRun } from '../stream/protocol.ts'
import { RunMoves } from '../stream/run-moves.ts'
import { deliverCommand } from '../runs/commands.ts'
import { followUntil, startRun, type RunOrder } from '../runs/start.ts'
import { requirePermission, type Served } from '../http/served.ts'
import { readState } from '../runs/view.ts'
import { findMessage, findLastVisibleRun } from './history.ts'

/** When the model reads a message that is sent while a run is under way: at its next turn, or after its answer. */
export const busyDeliveries = ['steer', 'queue'] as const
export type BusyDelivery = (typeof busyDeliveries)[number]

/** A message of a person in a conversation. */
export interface Said {
  readonly agent: string
  readonly sessionId: string
  readonly messageId: string
  readonly parts: readonly UserPart[]
  readonly whenBusy?: BusyDelivery | undefined
  /** True if the message replaces the one with its id, and all that came after that. */
  readonly isRewritten: boolean
}

/**
 * Takes a message of a person into a conversation, and returns the place of its answer. It starts a run; joins the run that is
 * under way or waits for a person; or, if it replaces an earlier message, starts a branch of the conversation there. A
 * message whose id is on record is not taken again.
 */
export async function say(
  served: Served,
  principal: Principal,
  said: Said,
  headers: StartHeaders,
): Promise<FollowedRun> {
  // Also for a message that joins a run, and before a run is cancelled for one that is rewritten.
  requirePermission(principal, 'start')
  const { agent, sessionId, messageId, parts: input } = said
  const order: MessageOrder = { agent, sessionId, messageId, input }
  if (said.isRewritten) {
    const branched = await branch(served, principal, order, headers)
    if (branched) return branched
  }
  for (let attempt = 1; ; attempt++) {
    const joined = await join(served, principal, said)
    if (joined) return joined
    // Other runs keep beginning and ending in between: this one waits for its turn.
    const whenBusy =
      attempt < 10 && !(await isBeingCancelled(served.ledger, said.sessionId)) ? 'conflict' : 'wait'
    try {
      return await start(served, principal, { ...order, whenBusy }, headers)
    } catch (error) {
      if (!isBusy(error) || whenBusy === 'wait') throw error
    }
  }
}

interface MessageOrder extends Pick<RunOrder, 'agent' | 'from' | 'whenBusy'> {
  readonly sessionId: string
  readonly messageId: string
  readonly input: readonly UserPart[]
}

/** Returns true if another run of the conversation was faster. */
function isBusy(error: unknown): boolean {
  return error instanceof LedgerConflictError && (error.kind === 'session' || error.kind === 'unique')
}

async function start(
  served: Served,
  principal: Principal,
  order: MessageOrder,
  headers: StartHeaders,
): Promise<FollowedRun> {
  const before = order.from === undefined ? await readUnsaid(served, principal, order) : []
  const message: UserMessage = { role: 'user', parts: order.input }
  const input = before.length === 0 ? order.input : [...before, message]
  const { id } = await startRun(served, principal, { ...order, input }, headers)
  return { runId: id, after: 0 }
}

/** Reads the messages that the last run did not show, for example because it was cancelled: they precede the next message. */
async function readUnsaid(
  served: Served,
  principal: Principal,
  { sessionId, messageId, whenBusy }: MessageOrder,
): Promise<readonly UserMessage[]> {
  const runId = await findLastVisibleRun(served.ledger, principal, sessionId)
  if (runId === undefined) return []
  // Only a run that a process drives comes to its end; where workers drive, one may be about to.
  if (whenBusy === 'wait' && (served.wake !== undefined || (await isRunDriven(served.ledger, runId))))
    await followUntil(served, runId, ({ type }) => type === 'run_finished')
  const unshown = await readUnshown(served.ledger, runId)
  return unshown.flatMap((each) => (each.messageId === messageId ? [] : [each.message]))
}

/** Reads the messages that a run ended without showing to its model. */
async function readUnshown(
  ledger: Ledger,
  runId: RunId,
): Promise<readonly { readonly messageId: string; readonly message: UserMessage }[]> {
  const moves = new RunMoves()
  const unshown: { messageId: string; message: UserMessage }[] = []
  for await (const event of ledger.read(runId)) {
    for (const move of moves.next(event)) {
      if (move.type === 'input_dropped') {
        unshown.push({ messageId: move.messageId, message: { role: 'user', parts: move.parts } })
      }
    }
  }
  return unshown
}

async function isBeingCancelled(ledger: Ledger, sessionId: string): Promise<boolean> {
  const runId = await findLastRun(ledger, sessionId)
  return runId !== undefined && (await readState(ledger, runId)).cancel !== undefined
}

/** Gives the message to the last run if that has not ended. Also returns the run if it already has the message. */
async function join(served: Served, principal: Principal, said: Said): Promise<FollowedRun | undefined> {
  const { ledger } = served
  const { sessionId, messageId, parts, whenBusy = 'steer' } = said
  const runId = await findLastRun(ledger, sessionId)
  // `startRun` refuses a session of another caller.
  if (runId === undefined || !(await isVisible(ledger, principal, runId))) return undefined
  const state = await readState(ledger, runId)
  const here = await findReceived(ledger, runId, messageId)
  if (here !== undefined && !said.isRewritten) {
    if (toCanonicalJson(here.parts) !== toCanonicalJson(parts)) {
      throw new RefusedRequestError(
        409,
        'key_used',
        `Run ${runId} has a message with the id ${messageId.slice(0, 80)} and other content. Give each message its own id, or name the message as messageId to rewrite it.`,
      )
    }
    if (here.isFirst) return { runId, after: 0 }
    if (here.isDropped) return undefined
    return { runId, message: messageId, next: startNextRun(served, principal, said, runId) }
  }
  if (state.phase === 'done' || state.cancel !== undefined) return undefined
  const message: UserMessage = { role: 'user', parts }
  const command = { type: whenBusy, message, receipt: messageId } as const
  const answer = await deliverCommand(served, principal, runId, command)
  if (!answer.accepted) return undefined
  return { runId, message: messageId, next: startNextRun(served, principal, said, runId) }
}

/** Finds a message of the user among those of a run. */
async function findReceived(
  ledger: Ledger,
  runId: RunId,
  messageId: string,
): Promise<{ parts: readonly UserPart[]; isFirst: boolean; isDropped: boolean } | undefined> {
  let received: Awaited<ReturnType<typeof findReceived>>
  for await (const event of ledger.read(runId)) {
    if (event.type === 'input_received' && event.receipt === messageId) {
      received = { parts: event.message.parts, isFirst: event.delivery === 'start', isDropped: false }
    }
    if (event.type === 'input_settled' && event.receipt === messageId && !event.delivered && received) {
      received.isDropped = true
    }
  }
  return received
}

/**
 * Begins the next run of the conversation if a run ends without showing a message that joined it, and returns that run; several
 * such messages begin one run. `undefined` if the run shows the message, or was cancelled: the next message then carries it.
 */
async function startNextRun(
  served: Served,
  principal: Principal,
  said: Said,
  runId: RunId,
): Promise<FollowedRun | undefined> {
  const { ledger, stream } = served
  const { sessionId, messageId } = said
  try {
    const isShown = (event: RuntimeEvent): boolean =>
      event.type === 'input_settled' && event.receipt === messageId && event.delivered
    const last = await followUntil(served, runId, (event) => event.type === 'run_finished' || isShown(event))
    if (last?.type !== 'run_finished' || last.reason === 'cancelled') return undefined
    const unshown = (await readUnshown(ledger, runId)).at(-1)
    // Another message may have begun the next run: that carries this one.
    if (unshown === undefined || (await findLastRun(ledger, sessionId)) !== runId) return undefined
    const { agent } = said
    const order = { agent, sessionId, messageId: unshown.messageId, input: unshown.message.parts }
    return await start(served, principal, order, { idempotencyKey: `next:${runId}` })
  } catch (error) {
    if (!isBusy(error))
      stream.report(error, `A message that run ${runId} did not show could not begin the next run`)
    return undefined
  }
}

/**
 * Starts a run that answers a message again, with the history before that message. A run that is under way answers what the
 * person took back, so it is cancelled. `undefined` if the message is not on record.
 */
async function branch(
  served: Served,
  principal: Principal,
  order: MessageOrder,
  headers: StartHeaders,
): Promise<FollowedRun | undefined> {
  const { sessionId, messageId } = order
  const { ledger } = served
  const place = await findMessage(ledger, principal, sessionId, messageId)
  if (place === undefined) return undefined
  const runId = await findLastRun(ledger, sessionId)
  const state = runId && (await readState(ledger, runId))
  if (state && state.phase !== 'done' && state.cancel === undefined) {
    const reason = 'An earlier message was written anew'
    await deliverCommand(served, principal, state.runId, { type: 'cancel', by: principal.name, reason })
  }
  const from = { runId: place.runId, ...(place.seq !== undefined && { atSeq: place.seq - 1 }) }
  return await start(served, principal, { ...order, from, whenBusy: 'wait' }, headers)
}
