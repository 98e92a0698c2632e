import type { AnsweredQuestion, OutsideCommandOf } from '../../vocabulary/events/command.ts'
import type { EventOf, FactOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { changedInputText } from '../prompt/changed-input.ts'
import { refusal, type Decision, type Refusal } from '../state/decision.ts'
import type { Call, RunState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'

type DecisionCommand = OutsideCommandOf<'approve' | 'deny'>

/**
 * Law 13: an approval is bound to its call, its attempt and the input that will run, and decides once. With an input of
 * its own, it is that input that the fact records.
 */
export function decideApproval(state: RunState, command: OutsideCommandOf<'approve'>, at: number): Decision {
  const waiting = awaitingCall(state, command, at)
  if ('refused' in waiting) return waiting
  const { by, input, reason } = command
  const fact = { ...decisionFact(state, waiting, command), approved: true, ...omitUndefined({ reason }) }
  // The same input is no other one.
  if (input === undefined || digestOf(input) === digestOf(waiting.call.input)) return { facts: [fact] }
  return { facts: [{ ...fact, input, note: changedInputText(by, waiting.call.input, input) }] }
}

/** A denial is bound to its call and its attempt, as an approval is. */
export function decideDenial(state: RunState, command: OutsideCommandOf<'deny'>, at: number): Decision {
  const waiting = awaitingCall(state, command, at)
  if ('refused' in waiting) return waiting
  const fact = decisionFact(state, waiting, command)
  return { facts: [{ ...fact, approved: false, reason: command.reason }] }
}

/** A call whose approval is awaited, and the digest of the input that was shown. */
interface AwaitingCall {
  readonly call: Call
  readonly inputDigest: string
}

/** Returns the call that a decision is about; a refusal where the call awaits none, or one about another question. */
function awaitingCall(
  state: RunState,
  { toolCallId, ...question }: DecisionCommand,
  at: number,
): AwaitingCall | { readonly refused: Refusal } {
  const call = findCall(state, toolCallId)
  if (call === undefined) {
    return refusal(
      'unknown_call',
      `Run ${state.runId} has no open tool call ${toolCallId}; show the run to see which wait.`,
    )
  }
  const { inputDigest } = call
  if (call.status !== 'awaiting_approval' || inputDigest === undefined) {
    return refusal(
      'not_awaiting_approval',
      `Tool call ${call.toolCallId} does not wait for an approval; it is ${call.status}. Show the run to see which calls wait.`,
    )
  }
  if (call.inputRemoved) {
    return refusal(
      'not_awaiting_approval',
      `The input of tool call ${call.toolCallId} was removed from the record, so nobody can decide about it: it is not run. Resume the run, which then continues without it.`,
    )
  }
  if (call.expiresAt !== undefined && at >= call.expiresAt) {
    return refusal(
      'approval_expired',
      `The time to decide about tool call ${call.toolCallId} is over; it counts as denied. To have it made, ask the run for it anew.`,
    )
  }
  return refuseStaleDecision(call, question) ?? { call, inputDigest }
}

/** The refusal of a decision about another start of the call, or about another input, than is asked about now. */
function refuseStaleDecision(
  { toolCallId, attempts, inputDigest }: Call,
  { attempt = 1, inputDigest: shown = inputDigest }: AnsweredQuestion,
): { readonly refused: Refusal } | undefined {
  if (attempt === attempts + 1 && shown === inputDigest) return undefined
  return refusal(
    'not_awaiting_approval',
    `This decision is about start ${attempt} of tool call ${toolCallId} and what was shown then. Start ${attempts + 1} ` +
      'is asked about now. Look at the pending approval, and decide with its attempt and input digest.',
  )
}

/** The fields that the fact of an approval and of a denial share. */
function decisionFact(
  { turn }: RunState,
  { call: { toolCallId, attempts }, inputDigest }: AwaitingCall,
  { by, via }: DecisionCommand,
): Omit<FactOf<'approval_decided'>, 'approved'> {
  return {
    type: 'approval_decided',
    turn,
    toolCallId,
    attempt: attempts + 1,
    by,
    inputDigest,
    ...omitUndefined({ via }),
  }
}

/** The fields that an approval and a denial share, as an event records them. */
export function recordedDecision({
  toolCallId,
  by,
  via,
  attempt,
  inputDigest,
}: EventOf<'approval_decided'>): Pick<
  DecisionCommand,
  'toolCallId' | 'by' | 'via' | 'attempt' | 'inputDigest'
> {
  return { toolCallId, by, attempt, inputDigest, ...omitUndefined({ via }) }
}

/** Returns whether an event records this very decision. */
export function recordsDecision(event: RuntimeEvent, { type, toolCallId, by }: DecisionCommand): boolean {
  return (
    event.type === 'approval_decided' &&
    event.elsewhere === undefined &&
    event.toolCallId === toolCallId &&
    event.by === by &&
    event.approved === (type === 'approve')
  )
}
