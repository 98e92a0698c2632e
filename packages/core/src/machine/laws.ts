import { LawBrokenError } from '../values/errors.ts'
import type { EventOf, RuntimeEvent } from '../events/event.ts'
import { deriveIdempotencyKey } from '../values/ids.ts'
import { toCanonicalJson, getOwn, isSameJson, omitUndefined } from '../values/json.ts'
import { computeDigest } from '../values/digest.ts'
import { isSameRequest, listWrittenParts, readWrittenText } from './reply.ts'
import { computeLeft, findGrantFault, isRecorded } from './budget.ts'
import { getDeadline } from './limits.ts'
import { isApprovedElsewhere, isHeldWrite, mayRetry } from './retry.ts'
import { type Call, type RunState, withSpent } from './state.ts'
import { findCall, findCallPlace, getMaxWebSearches, getPrice, openTurnCalls } from './calls.ts'
import { type AssistantPart, isSameModel } from '../events/content.ts'
import { findBound, type Limits } from '../events/limits.ts'
import { computeCost } from '../events/usage.ts'
import { digestSummaryRequest } from './compaction.ts'
import { areEnough, covers, refuseApprover } from './approvals.ts'
import { evolve } from './evolve.ts'
import { digestAdditions, computeRequestDigest } from './request.ts'

/**
 * `evolve`, with the laws that one event can break checked on the way. It runs before every append and again at every
 * verification, so that a fault of the writer is found twice. Laws 1 to 5 and 13 hold by `evolve` itself, which throws
 * `IllegalTransitionError`; the others throw `LawBrokenError`.
 */
export function audit(state: RunState | undefined, event: RuntimeEvent): RunState {
  const next = evolve(state, event)
  if (state === undefined) return next
  // After a removal of content the laws about content cannot be checked.
  if (next.removedFrom === undefined) auditContent(state, event)
  if (event.at < state.at) breakLaw(4, event, `time falls from ${state.at} to ${event.at}`)
  if (event.type === 'tool_started') auditStart(state, event)
  if (event.type === 'tool_attempt_failed') auditFailedAttempt(state, event)
  if (event.type === 'approval_decided' || event.type === 'approval_added') auditDecision(state, event)
  if (event.type === 'run_finished') auditTotals(state, event)
  if (event.type === 'limit_raised') auditRaise(state, event)
  return next
}

/** Audits events that follow a state, in order; returns the state after the last, `undefined` without events. */
export function auditAll(events: Iterable<RuntimeEvent>, before?: RunState): RunState | undefined {
  let state = before
  for (const event of events) state = audit(state, event)
  return state
}

function breakLaw(law: number, { seq }: RuntimeEvent, detail: string): never {
  throw new LawBrokenError(law, seq, detail)
}

/** The laws about content. */
function auditContent(state: RunState, event: RuntimeEvent): void {
  if (event.type === 'model_call_started') auditModelCall(state, event)
  if (event.type === 'compaction_started') auditSummaryCall(state, event)
  if (event.type === 'tool_requests_collected') auditCollected(state, event)
  if (event.type === 'approval_requested') auditQuestion(state, event)
  if (event.type === 'approval_applied') auditStanding(state, event)
  if (event.type === 'tool_started') auditStartedInput(state, event)
  if (event.type === 'assistant_message_finished') auditMessage(state, event)
}

/** Law 13: what approvals are bound to is the digest of the arguments themselves. */
function auditCollected(state: RunState, event: EventOf<'tool_requests_collected'>): void {
  for (const { toolCallId, inputDigest, input } of event.calls) {
    const call = findCall(state, toolCallId)
    if (call && computeDigest(input ?? call.input) === inputDigest) continue
    breakLaw(13, event, `the digest of call ${toolCallId} is not that of its input`)
  }
}

function auditQuestion(state: RunState, event: EventOf<'approval_requested'>): void {
  const { inputDigest, approvers = [] } = findCall(state, event.toolCallId) ?? {}
  if (inputDigest !== event.inputDigest)
    breakLaw(13, event, `call ${event.toolCallId} is asked about with other arguments than its own`)
  if (!isSameJson(approvers, event.approvers ?? []))
    breakLaw(13, event, `call ${event.toolCallId} is asked of other approvers than its own`)
}

/** Law 7: the model saw what the ledger says. Law 9: every call starts within what is left, the finalizing one too. */
function auditModelCall(state: RunState, event: EventOf<'model_call_started'>): void {
  requireSameAdditions(state, event)
  requireSameDigest(event, 'request', computeRequestDigest(state, event))
  requireGrant(state, event)
  const { grant, maxOutputTokens, attempt, finalizing, toolChoice } = event
  const { turns = 0, outputTokens, webSearches = 0 } = grant
  if (turns !== (attempt === 1 ? 1 : 0))
    breakLaw(9, event, `attempt ${attempt} of a turn is granted ${turns} turns`)
  if (maxOutputTokens !== outputTokens)
    breakLaw(9, event, `${maxOutputTokens} output tokens are asked for, and ${outputTokens} are granted`)
  const searches = getMaxWebSearches(state, event)
  if (searches !== 'unbounded' && searches !== webSearches)
    breakLaw(9, event, `${webSearches} web searches are granted, and ${searches} may run`)
  if (finalizing && (state.metLimit === undefined || toolChoice.type !== 'none'))
    breakLaw(9, event, 'a finalizing call needs a met limit and the tool choice none')
}

/** Laws 7 and 9, for the call of a model that sums up. The grant of an interrupted one before it is given back. */
function auditSummaryCall(state: RunState, event: EventOf<'compaction_started'>): void {
  const { compacting: _before, ...rest } = state
  const { usage, costUsd } = event.interrupted ?? {}
  requireGrant(usage ? { ...rest, totals: withSpent(state.totals, usage, costUsd) } : rest, event)
  requireSameAdditions(state, event)
  requireSameDigest(event, 'summary', digestSummaryRequest(state, event))
}

type StartedCall = EventOf<'model_call_started'> | EventOf<'compaction_started'>

function requireSameDigest(event: StartedCall, subject: string, rebuilt: string): void {
  if (rebuilt === event.requestDigest) return
  const sent = `the one that was sent ${event.requestDigest}`
  breakLaw(7, event, `the ${subject} that the ledger rebuilds has the digest ${rebuilt}, ${sent}`)
}

/** Law 7: what the adapter adds to the request is what the definition pins. */
function requireSameAdditions({ definition }: RunState, event: StartedCall): void {
  const { model, additions = [] } = event
  const pinned = digestAdditions(definition, model) ?? []
  if (pinned === additions || toCanonicalJson(pinned) === toCanonicalJson(additions)) return
  breakLaw(7, event, 'what it adds to the request is not what the definition of its model says')
}

/** Law 9: a grant is within what is left of every limit, at the price of the model, and before the run's time is up. */
function requireGrant(state: RunState, event: StartedCall): void {
  const { grant, at, model } = event
  if (at >= getDeadline(state)) breakLaw(9, event, 'the time of the run is up')
  const fault = findGrantFault(state, grant, 'model_call')
  if (fault !== undefined) breakLaw(9, event, fault)
  const { summarizer } = state.definition
  const price = summarizer && isSameModel(summarizer.model, model) ? summarizer.price : getPrice(state, model)
  const { inputTokens = 0, outputTokens = 0, webSearches = 0, costUsd } = grant
  if (price === undefined || costUsd === undefined) return
  const least = computeCost(price, { inputTokens, outputTokens, webSearches })
  if (costUsd < least * (1 - 1e-9))
    breakLaw(9, event, `${costUsd} dollars are granted for what costs ${least} with ${model.modelId}`)
}

/** Law 13: a call starts with the input on record, which is the approved one where a person was asked. */
function auditStartedInput(state: RunState, event: EventOf<'tool_started'>): void {
  const { toolCallId, inputDigest } = event
  const call = findCall(state, toolCallId)
  if (call === undefined || inputDigest === undefined) return
  if (inputDigest !== call.inputDigest || inputDigest !== computeDigest(call.input))
    breakLaw(13, event, `call ${toolCallId} starts with another input than the one on record`)
}

/** Laws 8 to 10: nothing starts past a limit, nor a second time unless its tool declares that it may. */
function auditStart(state: RunState, event: EventOf<'tool_started'>): void {
  const { toolCallId, effect, idempotencyKey, at, recorded } = event
  const call = findCall(state, toolCallId)
  if (call === undefined) return
  requireLetRun(state, event, call)
  const limit = call.attempts === 0 ? findUsedUpLimit(state, event) : undefined
  if (limit !== undefined) breakLaw(9, event, `call ${toolCallId} starts, and ${limit} is used up`)
  requireChildGrant(state, event, call)
  if (call.status === 'in_doubt' && call.recovery !== 'rerun' && call.recovery !== 'reconcile')
    breakLaw(10, event, `call ${toolCallId} is in doubt, and its tool does not allow another start`)
  // A start with a recorded result performs nothing, and has nothing to wait for.
  const { retryAt } = call.tries?.failed ?? {}
  if (retryAt !== undefined && at < retryAt && recorded === undefined)
    breakLaw(10, event, `call ${toolCallId} is tried again at ${at}, and ${retryAt} is due`)
  if (idempotencyKey !== deriveIdempotencyKey(event.runId, toolCallId))
    breakLaw(
      10,
      event,
      `the idempotency key of call ${toolCallId} is not the one that it has at every attempt`,
    )
  if (effect !== (call.effect ?? 'write'))
    breakLaw(10, event, `call ${toolCallId} starts as a ${effect}, and was collected as a ${call.effect}`)
}

/** Law 8: the shared events of a fork were performed once; its own writes need an approval or `writes: 'run'`. */
function requireLetRun(state: RunState, event: EventOf<'tool_started'>, call: Call): void {
  const { parent } = state
  if (parent?.relation === 'fork' && event.seq <= parent.seq) return
  const recorded = event.recorded ?? call.recorded
  if (!isHeldWrite(state, { ...call, ...omitUndefined({ recorded }) })) return
  if (isApprovedElsewhere(parent, call))
    breakLaw(13, event, `call ${event.toolCallId} starts on an approval of the run that this one forks`)
  breakLaw(8, event, `call ${event.toolCallId} is a write of a fork, and no approval lets it run`)
}

/** The limit on tool calls that leaves no room for the first start of one. */
function findUsedUpLimit(
  state: RunState,
  { toolCallId, name }: EventOf<'tool_started'>,
): keyof Limits | undefined {
  const { maxToolCalls, maxToolCallsPerTurn = Infinity, maxCallsByTool = {} } = state.limits
  if (maxToolCalls !== undefined && computeLeft(state).toolCalls < 1) return 'maxToolCalls'
  if (findCallPlace(openTurnCalls(state), toolCallId) >= maxToolCallsPerTurn) return 'maxToolCallsPerTurn'
  const taken = getOwn(state.totals.toolCallsByTool, name) ?? 0
  return taken >= (getOwn(maxCallsByTool, name) ?? Infinity) ? 'maxCallsByTool' : undefined
}

/** Law 9 for child runs: each starts under a grant, within what is left beside the start of its own call. */
function requireChildGrant(state: RunState, event: EventOf<'tool_started'>, call: Call): void {
  const { child, grant, toolCallId } = event
  if ((child === undefined) !== (grant === undefined))
    breakLaw(9, event, `call ${toolCallId} is granted something, and has no child run`)
  if (grant === undefined) return
  if (call.grant !== undefined) {
    if (toCanonicalJson(call.grant) === toCanonicalJson(grant)) return
    breakLaw(9, event, `call ${toolCallId} starts again under another grant`)
  }
  const { toolCalls } = grant
  const own = toolCalls === undefined ? grant : { ...grant, toolCalls: toolCalls + 1 }
  const fault = findGrantFault(state, own, 'child_run')
  if (fault !== undefined) breakLaw(9, event, `call ${toolCallId}: ${fault}`)
}

/** Law 10: a call whose effect is unknown is tried again only where its tool declares that safe. */
function auditFailedAttempt(state: RunState, event: EventOf<'tool_attempt_failed'>): void {
  const { toolCallId, outcome } = event
  const call = findCall(state, toolCallId)
  if (call !== undefined && !mayRetry(call, outcome))
    breakLaw(10, event, `call ${toolCallId} ended as ${outcome}, and its tool does not allow another attempt`)
}

/** Law 13: only what a fork shares with another run was decided elsewhere. */
function auditDecision(
  state: RunState,
  event: EventOf<'approval_decided'> | EventOf<'approval_added'>,
): void {
  const { parent } = state
  const { toolCallId, elsewhere, by, roles } = event
  const isShared = parent?.relation === 'fork' && event.seq <= parent.seq
  if (isShared !== (elsewhere === true))
    breakLaw(13, event, `call ${toolCallId} was decided about in another run than the event says`)
  const call = findCall(state, toolCallId)
  const isApproval = event.type === 'approval_added' || event.approved
  if (isShared || !isApproval || call === undefined) return
  const person = { by, ...omitUndefined({ roles }) }
  if (refuseApprover(state, call, person)) breakLaw(13, event, `${by} may not approve call ${toolCallId}`)
  const isEnough = areEnough(call.approvers, [...(call.approvals ?? []), person])
  if (isEnough !== (event.type === 'approval_decided'))
    breakLaw(13, event, `call ${toolCallId} was approved by more or fewer people than it needs`)
}

/** Law 13: a standing approval lets only the calls run that it covers, while it holds. */
function auditStanding(state: RunState, event: EventOf<'approval_applied'>): void {
  const { toolCallId, standing, by, at } = event
  const call = findCall(state, toolCallId)
  const given = state.standing?.find((each) => each.toolCallId === standing)
  const isShared = state.parent?.relation === 'fork' && event.seq <= state.parent.seq
  if (isShared || (call && given?.by === by && covers(state, given, call, at))) return
  breakLaw(13, event, `no standing approval ${standing} of ${by} covers call ${toolCallId}`)
}

/** Law 12: the calls of a message are those that were requested, to the letter, and its deltas, put together, are its text. */
function auditMessage(state: RunState, event: EventOf<'assistant_message_finished'>): void {
  const { parts, places } = event
  for (const part of parts) {
    if (part.type !== 'tool_call') continue
    const call = findCall(state, part.toolCallId)
    if (call === undefined || !isSameRequest(call, part))
      breakLaw(12, event, `call ${part.toolCallId} of the message is not what was requested`)
  }
  const isRising = places?.every((place, index) => place >= (places[index - 1] ?? 0)) ?? true
  if (!isRising || (places && places.length !== parts.length))
    breakLaw(12, event, `the places of the message are not those of its ${parts.length} parts`)
  if (isRecorded(state, 'textDeltas')) requireWhole(state, event, 'text')
  if (isRecorded(state, 'reasoning')) requireWhole(state, event, 'reasoning')
}

/** Compares the texts of one kind, as they were shown and as the model wrote them. */
function requireWhole(
  state: RunState,
  event: EventOf<'assistant_message_finished'>,
  kind: 'text' | 'reasoning',
): void {
  if (state.phase !== 'streaming') return
  const drafts = state.attempt.drafts.filter((draft) => draft.kind === kind).sort((a, b) => a.part - b.part)
  if (drafts.map(({ text }) => text).join('') !== joinTextOfKind(event.parts, kind))
    breakLaw(12, event, `the ${kind} of the message is not that of its deltas`)
  if (drafts.map(readWrittenText).join('') !== joinTextOfKind(listWrittenParts(event), kind))
    breakLaw(12, event, `the ${kind} that the model wrote is not that of its deltas`)
}

function joinTextOfKind(parts: readonly AssistantPart[], kind: 'text' | 'reasoning'): string {
  return parts.map((part) => (part.type === kind ? part.text : '')).join('')
}

/** Law 6: a run ends with the totals of its events. */
function auditTotals(state: RunState, event: EventOf<'run_finished'>): void {
  const { turns, toolCalls, usage, costUsd = null } = state.totals
  if (turns !== event.turns || toolCalls !== event.toolCalls) {
    const counted = `its events say ${turns} and ${toolCalls}`
    breakLaw(6, event, `the run says ${event.turns} turns and ${event.toolCalls} tool calls, ${counted}`)
  }
  if (costUsd === (event.costUsd ?? null) && isSameJson(usage, event.usage)) return
  const spent = toCanonicalJson([usage, costUsd])
  breakLaw(6, event, `the run says another usage or cost than its events, which say ${spent}`)
}

/** Law 9, for a child run: no limit is raised above what its parent granted. */
function auditRaise({ parent }: RunState, event: EventOf<'limit_raised'>): void {
  const { limit, max } = event
  const bound = findBound(parent?.grant ?? {}, limit)
  if (bound !== undefined && max > bound)
    breakLaw(9, event, `${limit} is raised to ${max}, and ${bound} are granted`)
}
