import { LawBrokenError } from '../values/errors.ts'
import type { EventOf, RuntimeEvent } from '../events/event.ts'
import { idempotencyKeyOf } from '../values/ids.ts'
import { canonicalJson, getOwn, isSameJson, omitUndefined } from '../values/json.ts'
import { digestOf } from '../values/digest.ts'
import { isSameRequest, listWrittenParts, readWrittenText } from './reply.ts'
import { getDeadline, findGrantFault, isRecorded, countToolCallsLeft } from './budget.ts'
import { isApprovedElsewhere, isHeldWrite, mayRetry } from './retry.ts'
import { type Call, type RunState, type StreamingState, withSpent } from './state.ts'
import { findCall, findCallPlace, getMaxWebSearches, getPrice, openTurnCalls } from './calls.ts'
import { type AssistantPart, type ModelRef, sameModel } from '../events/content.ts'
import { boundOfLimit, type Grant, type Limits } from '../events/limits.ts'
import { costOf } from '../events/usage.ts'
import { digestSummaryRequest } from './compaction.ts'
import { evolve } from './evolve.ts'
import { digestAdditions, requestDigest } from './request.ts'

/** The laws about the content of tool call events, which the fold alone does not check. */
function auditCalls(state: RunState, event: RuntimeEvent): void {
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
function requireOwnDecision(
  { parent }: RunState,
  { elsewhere, seq, toolCallId }: EventOf<'approval_decided'>,
): void {
  if ((parent?.relation === 'fork' && seq <= parent.seq) === (elsewhere === true)) return
  throw new LawBrokenError(13, seq, `call ${toolCallId} was decided about in another run than the event says`)
}

/** Laws 9 and 10: nothing starts past a limit, nor a second time unless its tool declares that it may. */
function requireHonestStart(state: RunState, event: EventOf<'tool_started'>, call: Call): void {
  const { toolCallId, effect, idempotencyKey, seq } = event
  requireLetRun(state, event, call)
  const limit = call.attempts === 0 ? findUsedUpLimit(state, event) : undefined
  if (limit !== undefined) {
    throw new LawBrokenError(9, seq, `call ${toolCallId} starts, and ${limit} is used up`)
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

/** The limit on tool calls that leaves no room for the first start of one. */
function findUsedUpLimit(
  state: RunState,
  { toolCallId, name }: EventOf<'tool_started'>,
): keyof Limits | undefined {
  const { maxToolCallsPerTurn = Infinity, maxCallsByTool = {} } = state.limits
  if (countToolCallsLeft(state) < 1) return 'maxToolCalls'
  if (findCallPlace(openTurnCalls(state), toolCallId) >= maxToolCallsPerTurn) return 'maxToolCallsPerTurn'
  const taken = getOwn(state.totals.toolCallsByTool, name) ?? 0
  return taken >= (getOwn(maxCallsByTool, name) ?? Infinity) ? 'maxCallsByTool' : undefined
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
function requireSafeRetry(state: RunState, event: EventOf<'tool_attempt_failed'>): void {
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
  if (!isHeldWrite(state, { ...call, ...omitUndefined({ recorded }) })) return
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
  const fault = findGrantFault(state, own, 'child_run')
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

/**
 * `evolve`, with the laws that one event can break checked on the way. It runs before every append and again at every
 * verification, so that a fault of the writer is found twice. Laws 1 to 5 and 13 hold by `evolve` itself, which throws
 * `IllegalTransitionError`; the others throw `LawBrokenError`.
 */
export function audit(state: RunState | undefined, event: RuntimeEvent): RunState {
  // As it is before it starts: the fold of a batch may change the calls in their place.
  const starting = state && event.type === 'tool_started' ? findCall(state, event.toolCallId) : undefined
  const next = evolve(state, event)
  if (state === undefined) return next
  if (next.removedFrom === undefined) auditContent(state, event)
  requireTime(state, event)
  if (event.type === 'tool_started' && starting) requireHonestStart(state, event, starting)
  if (event.type === 'tool_attempt_failed') requireSafeRetry(state, event)
  if (event.type === 'approval_decided') requireOwnDecision(state, event)
  if (event.type === 'run_finished') requireTotals(state, event)
  if (event.type === 'limit_raised') requireGranted(state, event)
  return next
}

/** The laws about content: after a removal of content they cannot be checked. */
function auditContent(state: RunState, event: RuntimeEvent): void {
  if (event.type === 'model_call_started') {
    requireSameRequest(state, event)
    requireWithinLimits(state, event)
  }
  if (event.type === 'compaction_started') requireHonestSummary(state, event)
  auditCalls(state, event)
  if (event.type === 'assistant_message_finished') requireWholeMessage(state, event)
}

/** Audits events that follow a state, in order; returns the state after the last, `undefined` without events. */
export function auditAll(events: Iterable<RuntimeEvent>, before?: RunState): RunState | undefined {
  let state = before
  for (const event of events) state = audit(state, event)
  return state
}

/** Law 7: the model saw what the ledger says. */
function requireSameRequest(state: RunState, event: EventOf<'model_call_started'>): void {
  requireSameAdditions(state, event)
  const rebuilt = requestDigest(state, event)
  if (rebuilt === event.requestDigest) return
  throw new LawBrokenError(
    7,
    event.seq,
    `the request that the ledger rebuilds has the digest ${rebuilt}, the one that was sent ${event.requestDigest}`,
  )
}

/** Law 7: what the adapter adds to the request is what the definition pins. */
function requireSameAdditions(
  { definition }: RunState,
  { seq, model, additions = [] }: EventOf<'model_call_started' | 'compaction_started'>,
): void {
  const pinned = digestAdditions(definition, model) ?? []
  if (pinned === additions || canonicalJson(pinned) === canonicalJson(additions)) return
  throw new LawBrokenError(7, seq, 'what it adds to the request is not what the definition of its model says')
}

/** Law 9: every model call starts within what is left, the finalizing one too, which may not ask for tools. */
function requireWithinLimits(state: RunState, event: EventOf<'model_call_started'>): void {
  const { grant, seq, maxOutputTokens, attempt } = event
  requireGrant(state, event)
  if ((grant.turns ?? 0) !== (attempt === 1 ? 1 : 0)) {
    throw new LawBrokenError(9, seq, `attempt ${attempt} of a turn is granted ${grant.turns ?? 0} turns`)
  }
  if (maxOutputTokens !== grant.outputTokens) {
    throw new LawBrokenError(
      9,
      seq,
      `${maxOutputTokens} output tokens are asked for, and ${grant.outputTokens} are granted`,
    )
  }
  requireSearches(state, event)
  if (event.finalizing && (state.metLimit === undefined || event.toolChoice.type !== 'none')) {
    throw new LawBrokenError(9, seq, 'a finalizing call needs a met limit and the tool choice none')
  }
}

/** The grant of a call names the web searches that its provider may run. */
function requireSearches(state: RunState, event: EventOf<'model_call_started'>): void {
  const bound = getMaxWebSearches(state, event)
  const { webSearches = 0 } = event.grant
  if (bound === 'unbounded' || bound === webSearches) return
  throw new LawBrokenError(9, event.seq, `${webSearches} web searches are granted, and ${bound} may run`)
}

/** A grant is within what is left of every limit, at the price of the model, and before the run's time is up. */
function requireGrant(
  state: RunState,
  { grant, at, seq, model }: EventOf<'model_call_started'> | EventOf<'compaction_started'>,
): void {
  const deadline = getDeadline(state)
  if (deadline !== undefined && at >= deadline) throw new LawBrokenError(9, seq, 'the time of the run is up')
  const fault = findGrantFault(state, grant, 'model_call') ?? priceFault(state, grant, model)
  if (fault !== undefined) throw new LawBrokenError(9, seq, fault)
}

/** Law 9, for a child run: no limit is raised above what its parent granted. */
function requireGranted({ parent }: RunState, { limit, max, seq }: EventOf<'limit_raised'>): void {
  const bound = boundOfLimit(parent?.grant ?? {}, limit)
  if (bound === undefined || max <= bound) return
  throw new LawBrokenError(9, seq, `${limit} is raised to ${max}, and ${bound} are granted`)
}

/** Money is granted at the price of the model that is called. */
function priceFault(state: RunState, grant: Grant, model: ModelRef): string | undefined {
  const { summarizer } = state.definition
  const price = summarizer && sameModel(summarizer.model, model) ? summarizer.price : getPrice(state, model)
  const { inputTokens = 0, outputTokens = 0, webSearches = 0, costUsd } = grant
  if (price === undefined || costUsd === undefined) return undefined
  const least = costOf(price, { inputTokens, outputTokens, webSearches })
  return costUsd >= least * (1 - 1e-9)
    ? undefined
    : `${costUsd} dollars are granted for what costs ${least} with ${model.modelId}`
}

/** Laws 7 and 9, for the call of a model that sums up. The grant of an interrupted one before it is given back. */
function requireHonestSummary(state: RunState, event: EventOf<'compaction_started'>): void {
  const { compacting: _before, ...rest } = state
  const { usage, costUsd } = event.interrupted ?? {}
  requireGrant(usage ? { ...rest, totals: withSpent(state.totals, usage, costUsd) } : rest, event)
  requireSameAdditions(state, event)
  const rebuilt = digestSummaryRequest(state, event)
  if (rebuilt === event.requestDigest) return
  throw new LawBrokenError(7, event.seq, `the summary that the ledger rebuilds has the digest ${rebuilt}`)
}

/** Law 12: the deltas of a message, put together, are the message. */
function requireWholeMessage(state: RunState, event: EventOf<'assistant_message_finished'>): void {
  if (state.phase !== 'streaming') return
  requirePlaces(event)
  if (isRecorded(state, 'textDeltas')) requireWhole(state.attempt.drafts, event, 'text')
  if (isRecorded(state, 'reasoning')) requireWhole(state.attempt.drafts, event, 'reasoning')
}

function requirePlaces({ parts, places, seq }: EventOf<'assistant_message_finished'>): void {
  if (places === undefined) return
  const isRising = places.every((place, index) => place >= (places[index - 1] ?? 0))
  if (isRising && places.length === parts.length) return
  throw new LawBrokenError(12, seq, `the places of the message are not those of its ${parts.length} parts`)
}

/** Compares the texts of one kind, as they were shown and as the model wrote them. */
function requireWhole(
  drafts: StreamingState['attempt']['drafts'],
  event: EventOf<'assistant_message_finished'>,
  kind: 'text' | 'reasoning',
): void {
  let [shown, written] = ['', '']
  for (const draft of inPlaces(drafts)) {
    if (draft.kind !== kind) continue
    shown += draft.text
    written += readWrittenText(draft)
  }
  if (shown !== wholeText(event.parts, kind))
    throw new LawBrokenError(12, event.seq, `the ${kind} of the message is not that of its deltas`)
  if (written !== wholeText(listWrittenParts(event), kind))
    throw new LawBrokenError(12, event.seq, `the ${kind} that the model wrote is not that of its deltas`)
}

/** In the order of their parts, which is nearly always the order in which they began. */
function inPlaces<Draft extends { readonly part: number }>(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.length > 1 ? drafts.toSorted((a, b) => a.part - b.part) : drafts
}

function wholeText(parts: readonly AssistantPart[], kind: 'text' | 'reasoning'): string {
  let text = ''
  for (const part of parts) if (part.type === kind) text += part.text
  return text
}

/** Law 4, for the time of events. */
function requireTime(before: { readonly at: number }, { at, seq }: RuntimeEvent): void {
  if (at >= before.at) return
  throw new LawBrokenError(4, seq, `time falls from ${before.at} to ${at}`)
}

function requireTotals(state: RunState, event: EventOf<'run_finished'>): void {
  const { turns, toolCalls, usage, costUsd } = state.totals
  if (turns !== event.turns || toolCalls !== event.toolCalls) {
    throw new LawBrokenError(
      6,
      event.seq,
      `the run says ${event.turns} turns and ${event.toolCalls} tool calls, its events say ${turns} and ${toolCalls}`,
    )
  }
  if ((costUsd ?? null) === (event.costUsd ?? null) && isSameJson(usage, event.usage)) return
  const spent = canonicalJson([usage, costUsd ?? null])
  throw new LawBrokenError(
    6,
    event.seq,
    `the run says another usage or cost than its events, which say ${spent}`,
  )
}
