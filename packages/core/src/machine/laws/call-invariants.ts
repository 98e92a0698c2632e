import { LawBrokenError } from '../../vocabulary/errors.ts'
import type { EventOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { idempotencyKeyOf } from '../../vocabulary/values/ids.ts'
import { canonicalJson } from '../../vocabulary/values/json.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import { isSameRequest } from '../decide/reply-fault.ts'
import { grantFault, toolCallsLeft } from '../limits/budget.ts'
import { isApprovedElsewhere, isHeldBack } from '../limits/fork-writes.ts'
import { mayRetry } from '../limits/retry.ts'
import type { Call, RunState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'

/** The laws about the content of tool call events, which the fold alone does not check. */
export function auditCalls(state: RunState, event: RuntimeEvent): void {
  if (event.type === 'tool_requests_collected') requireDigests(state, event)
  if (event.type === 'approval_requested') requireAskedDigest(state, event)
  if (event.type === 'tool_started') requireStartedDigest(state, event)
  if (event.type === 'assistant_message_finished') requireSameCalls(state, event)
}

/** Law 13: what approvals are bound to is the digest of the arguments themselves. */
function requireDigests(state: RunState, event: EventOf<'tool_requests_collected'>): void {
  for (const { toolCallId, inputDigest, input } of event.calls) {
    const call = findCall(state, toolCallId)
    if (call && digestOf(input ?? call.input) === inputDigest) continue
    throw new LawBrokenError(13, event.seq, `the digest of call ${toolCallId} is not that of its input`)
  }
}

function requireAskedDigest(state: RunState, event: EventOf<'approval_requested'>): void {
  if (state.removedFrom !== undefined) return
  if (findCall(state, event.toolCallId)?.inputDigest === event.inputDigest) return
  throw new LawBrokenError(
    13,
    event.seq,
    `call ${event.toolCallId} is asked about with other arguments than its own`,
  )
}

/** Law 13: a call starts with the input on record, which is the approved one where a person was asked. */
function requireStartedDigest(
  state: RunState,
  { toolCallId, inputDigest, seq }: EventOf<'tool_started'>,
): void {
  const call = findCall(state, toolCallId)
  if (call === undefined || inputDigest === undefined) return
  if (inputDigest === call.inputDigest && inputDigest === digestOf(call.input)) return
  throw new LawBrokenError(13, seq, `call ${toolCallId} starts with another input than the one on record`)
}

/** Law 13: only what a fork shares with another run was decided elsewhere. */
export function requireOwnDecision(
  { parent }: RunState,
  { elsewhere, seq, toolCallId }: EventOf<'approval_decided'>,
): void {
  if ((parent?.relation === 'fork' && seq <= parent.seq) === (elsewhere === true)) return
  throw new LawBrokenError(13, seq, `call ${toolCallId} was decided about in another run than the event says`)
}

/** Laws 9 and 10: nothing starts past a limit, nor a second time unless its tool declares that it may. */
export function requireHonestStart(state: RunState, event: EventOf<'tool_started'>, call: Call): void {
  const { toolCallId, effect, idempotencyKey, seq } = event
  requireLetRun(state, event, call)
  if (call.attempts === 0 && toolCallsLeft(state) < 1) {
    throw new LawBrokenError(9, seq, `call ${toolCallId} starts, and maxToolCalls is used up`)
  }
  requireChildGrant(state, call, event)
  if (call.status === 'in_doubt' && call.recovery !== 'rerun' && call.recovery !== 'reconcile') {
    throw new LawBrokenError(
      10,
      seq,
      `call ${toolCallId} is in doubt, and its tool does not allow another start`,
    )
  }
  requireDueRetry(call, event)
  if (idempotencyKey !== idempotencyKeyOf(event.runId, toolCallId)) {
    throw new LawBrokenError(
      10,
      seq,
      `the idempotency key of call ${toolCallId} is not the one that it has at every attempt`,
    )
  }
  if (effect !== (call.effect ?? 'write')) {
    throw new LawBrokenError(
      10,
      seq,
      `call ${toolCallId} starts as a ${effect}, and was collected as a ${call.effect}`,
    )
  }
}

/**
 * Law 10: a failed attempt is followed by another only where that is safe, and not before its time. A start with a
 * recorded result performs nothing, and has nothing to wait for.
 */
function requireDueRetry({ tries, toolCallId }: Call, { at, seq, recorded }: EventOf<'tool_started'>): void {
  const { retryAt } = tries?.failed ?? {}
  if (retryAt === undefined || at >= retryAt || recorded !== undefined) return
  throw new LawBrokenError(10, seq, `call ${toolCallId} is tried again at ${at}, and ${retryAt} is due`)
}

/** Law 10: a call whose effect is unknown is tried again only where its tool declares that safe. */
export function requireSafeRetry(state: RunState, event: EventOf<'tool_attempt_failed'>): void {
  const { toolCallId, outcome, seq } = event
  const call = findCall(state, toolCallId)
  if (call === undefined || mayRetry(call, outcome)) return
  throw new LawBrokenError(
    10,
    seq,
    `call ${toolCallId} ended as ${outcome}, and its tool does not allow another attempt`,
  )
}

/**
 * Law 8: the shared events of a fork were performed once, and its own writes start only with an approval or `writes:
 * 'run'`.
 */
function requireLetRun(state: RunState, event: EventOf<'tool_started'>, call: Call): void {
  const { parent } = state
  if (parent?.relation === 'fork' && event.seq <= parent.seq) return
  const recorded = event.recorded ?? call.recorded
  if (!isHeldBack(state, { ...call, ...omitUndefined({ recorded }) })) return
  if (isApprovedElsewhere(parent, call)) {
    throw new LawBrokenError(
      13,
      event.seq,
      `call ${event.toolCallId} starts on an approval of the run that this one forks`,
    )
  }
  throw new LawBrokenError(
    8,
    event.seq,
    `call ${event.toolCallId} is a write of a fork, and no approval lets it run`,
  )
}

/** Law 9 for child runs: each starts under a grant, within what is left beside the start of its own call. */
function requireChildGrant(
  state: RunState,
  call: Call,
  { child, grant, seq, toolCallId }: EventOf<'tool_started'>,
): void {
  if ((child === undefined) !== (grant === undefined)) {
    throw new LawBrokenError(9, seq, `call ${toolCallId} is granted something, and has no child run`)
  }
  if (grant === undefined) return
  if (call.grant !== undefined) {
    if (canonicalJson(call.grant) === canonicalJson(grant)) return
    throw new LawBrokenError(9, seq, `call ${toolCallId} starts again under another grant`)
  }
  const { toolCalls } = grant
  const own = toolCalls === undefined ? grant : { ...grant, toolCalls: toolCalls + 1 }
  const fault = grantFault(state, own, 'child_run')
  if (fault !== undefined) throw new LawBrokenError(9, seq, `call ${toolCallId}: ${fault}`)
}

/** Law 12: the calls of a message are those that were requested, to the letter. */
function requireSameCalls(state: RunState, event: EventOf<'assistant_message_finished'>): void {
  for (const part of event.parts) {
    if (part.type !== 'tool_call') continue
    const call = findCall(state, part.toolCallId)
    if (call && isSameRequest(call, part)) continue
    throw new LawBrokenError(
      12,
      event.seq,
      `call ${part.toolCallId} of the message is not what was requested`,
    )
  }
}
