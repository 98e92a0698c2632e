import {
  type AssistantPart,
  correctMediaTypes,
  type ReplyPart,
  type ResultPart,
  type UserMessage,
} from '../events/content.ts'
import { addMs } from '../events/event-parts.ts'
import type { CollectedCall, EventOf, Fact, FactOf, RuntimeEvent } from '../events/event.ts'
import type { ModelRefusal } from '../events/model-request.ts'
import type { CallVerdict, CheckedCall, GuardrailFind, Reconciliation, Signal } from '../events/signals.ts'
import { isTokenCount, takeLargerUsage, pickTokenCounts, usageFields } from '../events/usage.ts'
import { computeDigest } from '../values/digest.ts'
import type { ModelFailure } from '../values/errors.ts'
import { type ToolCallId, deriveToolCallId } from '../values/ids.ts'
import { isSameJson, toCanonicalJson, omitUndefined } from '../values/json.ts'
import { endInBackground } from './background.ts'
import { findCall, getPrice, isAtWork, removedInput, toTextContent, toToolStarted } from './calls.ts'
import { readSummaryText, toSummaryFact } from './compaction.ts'
import { isRecorded, settleUsage, toCostFields } from './budget.ts'
import { getWorkDeadline } from './limits.ts'
import { findNextFallback } from './next-action.ts'
import { findReplyFault, isEmptyReply, toPartPositions } from './reply.ts'
import { findDueAnswerCheck, isResultsCheckDue } from './required-effects.ts'
import {
  computeRetryAt,
  computeToolRetryAt,
  describeForkReason,
  isHeldWrite,
  isStopping,
  mayRetry,
  planHeldWrite,
  stubbed,
} from './retry.ts'
import {
  type Decision,
  nothing,
  type RecordedPosition,
  type SignalOf,
  type SignalRules,
  type Stamp,
} from './rules.ts'
import type { Attempt, Call, RunState, StreamingState } from './state.ts'

type ModelSignalType = Signal['type'] & `model_${string}`

/** The turn and the attempt that a signal of a model call is about. */
interface Here {
  readonly turn: number
  readonly attempt: number
}

interface ModelRules<T extends ModelSignalType> {
  decide(state: StreamingState, signal: SignalOf<T>, stamp: Stamp, here: Here): Decision
  recover(here: Here, event: RuntimeEvent, place: RecordedPosition, attempt: Attempt): Signal | undefined
}

/** Rules for the model call that is under way. Signals of any other call come too late to count. */
function whileStreaming<T extends ModelSignalType>(rules: ModelRules<T>): SignalRules<T> {
  return {
    decide(state, signal, stamp) {
      if (state.phase !== 'streaming' || state.attempt.failed) return nothing
      const { turn, attempt } = signal as SignalOf<ModelSignalType>
      if (turn !== state.turn || attempt !== state.attempt.number) return nothing
      return rules.decide(state, signal, stamp, { turn, attempt })
    },
    recover(state, place) {
      const event = place.recorded[place.index]
      if (event === undefined || !('attempt' in event) || state.phase !== 'streaming') return undefined
      return rules.recover({ turn: state.turn, attempt: event.attempt }, event, place, state.attempt)
    },
  }
}

/** Every signal of a model call. */
export const modelSignals: { readonly [T in ModelSignalType]: SignalRules<T> } = {
  model_started: whileStreaming({
    decide: (_state, { providerMessageId, servedModel, warnings }, _stamp, here) =>
      recordOne({
        type: 'assistant_started',
        ...here,
        ...omitUndefined({ providerMessageId, servedModel, warnings }),
      }),
    recover(here, event) {
      if (event.type !== 'assistant_started') return undefined
      const { providerMessageId, servedModel, warnings } = event
      return {
        type: 'model_started',
        ...here,
        ...omitUndefined({ providerMessageId, servedModel, warnings }),
      }
    },
  }),
  model_text: whileStreaming({
    decide: (state, signal, _stamp, here) =>
      isRecorded(state, 'textDeltas') ? decideTextDelta('assistant_text_delta', here, signal) : nothing,
    recover: (here, event) =>
      event.type === 'assistant_text_delta'
        ? { type: 'model_text', ...here, ...recoverText(event) }
        : undefined,
  }),
  model_reasoning: whileStreaming({
    decide: (state, signal, _stamp, here) =>
      isRecorded(state, 'reasoning') ? decideTextDelta('assistant_reasoning_delta', here, signal) : nothing,
    recover: (here, event) =>
      event.type === 'assistant_reasoning_delta'
        ? { type: 'model_reasoning', ...here, ...recoverText(event) }
        : undefined,
  }),
  model_tool_input: whileStreaming({
    decide(state, { part, name, text }, _stamp, here) {
      if (text === '' || !isRecorded(state, 'toolInputDeltas')) return nothing
      return recordOne({
        type: 'tool_input_delta',
        ...here,
        toolCallId: getCallId(state, part),
        part,
        name,
        text,
      })
    },
    recover(here, event) {
      if (event.type !== 'tool_input_delta') return undefined
      return { type: 'model_tool_input', ...here, part: event.part, name: event.name, text: event.text }
    },
  }),
  model_tool_request: whileStreaming({
    decide: decideToolRequest,
    recover(here, event, place, attempt) {
      // One that breaks the adapter's contract ends the call.
      if (event.type !== 'tool_request_ready') return recoverEnd(here, event, place, attempt)
      const { part, providerCallId, name, input, malformed, opaque } = event
      const call = { type: 'tool_call' as const, providerCallId, name, input }
      return {
        type: 'model_tool_request',
        ...here,
        part,
        call: { ...call, ...omitUndefined({ malformed, opaque }) },
      }
    },
  }),
  model_usage: whileStreaming({
    decide: decideModelUsage,
    recover: (here, event) => (event.type === 'usage_updated' ? recoverUsage(here, event) : undefined),
  }),
  model_finished: whileStreaming({ decide: decideModelFinished, recover: recoverEnd }),
  model_failed: whileStreaming({
    decide: (state, { failure }, stamp) => decideModelFailed(state, failure, stamp),
    recover: recoverEnd,
  }),
}

/** A report of usage takes nothing back: of each number the largest counts, and what is not a count of tokens is refused. */
function decideModelUsage(
  state: StreamingState,
  { usage: report, contextTokens, raw }: SignalOf<'model_usage'>,
): Decision {
  const refused = usageFields.filter((field) => report[field] !== undefined && !isTokenCount(report[field]))
  const usage = takeLargerUsage(state.totals.latestUsage, pickTokenCounts(report))
  const { turn, attempt } = state
  return recordOne({
    type: 'usage_updated',
    turn,
    attempt: attempt.number,
    usage,
    ...toCostFields(getPrice(state, attempt.model), usage),
    ...omitUndefined({
      contextTokens: isTokenCount(contextTokens) ? contextTokens : undefined,
      refused: refused.length > 0 ? refused : undefined,
      raw: isRecorded(state, 'rawUsage') ? raw : undefined,
    }),
  })
}

function recordOne(fact: Fact): Decision {
  return { facts: [fact] }
}

function decideToolRequest(
  state: StreamingState,
  { part, call }: SignalOf<'model_tool_request'>,
  stamp: Stamp,
): Decision {
  if (isRequested(state.attempt, part)) {
    return decideContractBreach(state, stamp, `part ${part} was reported as a whole call twice`)
  }
  const { providerCallId, name, input, malformed, opaque } = call
  return recordOne({
    type: 'tool_request_ready',
    turn: state.turn,
    attempt: state.attempt.number,
    toolCallId: getCallId(state, part),
    part,
    providerCallId,
    name,
    input,
    ...(malformed !== undefined && { malformed }),
    ...(opaque !== undefined && { opaque }),
  })
}

/** Returns whether the call at a place of the reply is whole already. Calls are in the order of their places. */
function isRequested({ calls }: Attempt, part: number): boolean {
  const last = calls.at(-1)
  return last !== undefined && last.part >= part && calls.some((known) => known.part === part)
}

function decideTextDelta(
  type: 'assistant_text_delta' | 'assistant_reasoning_delta',
  here: Here,
  { part, text: more, replaces, written }: SignalOf<'model_text' | 'model_reasoning'>,
): Decision {
  if (more === '' && !replaces && !written) return nothing
  return recordOne({
    type,
    ...here,
    part,
    text: more,
    ...(replaces && { replaces }),
    ...omitUndefined({ written }),
  })
}

/** The id of the call at a place of the reply: its ordinal is fixed when the place is first seen. */
function getCallId(state: StreamingState, part: number): ToolCallId {
  const { callParts, number } = state.attempt
  const place = callParts.lastIndexOf(part)
  return deriveToolCallId(state.runId, state.turn, number, 1 + (place === -1 ? callParts.length : place))
}

function decideModelFailed(
  state: StreamingState,
  failure: ModelFailure,
  stamp: Stamp,
  refusal?: ModelRefusal,
): Decision {
  const fact: FactOf<'model_stream_failed'> = {
    type: 'model_stream_failed',
    turn: state.turn,
    attempt: state.attempt.number,
    failure,
    ...omitUndefined({ retryAt: computeRetryAt(state, failure, stamp), refusal }),
  }
  return { facts: [...settleUsage(state, failure.class), fact] }
}

function decideContractBreach(state: StreamingState, stamp: Stamp, what: string): Decision {
  const message = `The adapter of ${state.attempt.model.provider} broke its contract: ${what}.`
  return decideModelFailed(state, { class: 'protocol', message, retryable: false }, stamp)
}

/**
 * The reply is whole. Law 12 is settled here: what the adapter says the message is must be what it streamed; a part
 * that it did not stream, or not to its end, is made up for by one more delta.
 */
function decideModelFinished(
  state: StreamingState,
  signal: SignalOf<'model_finished'>,
  stamp: Stamp,
): Decision {
  const { attempt, turn } = state
  const fault = findReplyFault(attempt, signal.parts)
  if (fault) return decideContractBreach(state, stamp, fault)
  const { modelId } = attempt.model
  // A refusal is not the end where the agent, or else the vendor, wants another model to be asked, and there is one.
  const { refusal = {} } = signal
  const isPassedOn = state.definition.onRefusal?.fallback ?? refusal.askAnother === true
  if (signal.stopReason === 'refused' && isPassedOn && findNextFallback(state)) {
    const why = refusal.reason === undefined ? '' : ` (${refusal.reason})`
    const message = `${modelId} refused to answer${why}.`
    return decideModelFailed(state, { class: 'refused', message, retryable: false }, stamp, refusal)
  }
  if (isEmptyReply(signal)) {
    const message = `${modelId} ended its reply without a word and without a call.`
    return decideModelFailed(state, { class: 'empty_reply', message, retryable: true }, stamp)
  }
  const here = { turn, attempt: attempt.number }
  const facts: Fact[] = [...settleUsage(state)]
  const parts: AssistantPart[] = []
  const ordinals = new Map(attempt.callParts.map((part, index) => [part, index + 1]))
  const known = new Set(attempt.calls.map(({ part }) => part))
  for (const reply of signal.parts) {
    const { part, ...content } = reply
    if (content.type === 'tool_call') {
      const ordinal = ordinals.get(part) ?? ordinals.size + 1
      ordinals.set(part, ordinal)
      const toolCallId = deriveToolCallId(state.runId, turn, attempt.number, ordinal)
      const { type: _type, ...call } = content
      if (!known.has(part)) {
        facts.push({ type: 'tool_request_ready', ...here, toolCallId, part, ...call })
      }
      parts.push({ ...content, toolCallId })
      continue
    }
    if (isRecorded(state, reply.type === 'reasoning' ? 'reasoning' : 'textDeltas'))
      facts.push(...findMissingDelta(attempt, reply, here))
    parts.push(content)
  }
  const { stopReason, rawStopReason, providerMessageId, providerState } = signal
  const written = (signal.written ?? []).map(({ part, ...content }) => {
    return { index: signal.parts.findIndex((reply) => reply.part === part), part: content }
  })
  facts.push({
    type: 'assistant_message_finished',
    ...here,
    stopReason,
    partial: false,
    parts,
    ...toPartPositions(signal.parts),
    ...(written.length > 0 && { written }),
    ...omitUndefined({ rawStopReason, providerMessageId, providerState, refusal: signal.refusal }),
  })
  return { facts }
}

/** The rest of a part's text that was not streamed. */
function findMissingDelta(attempt: Attempt, reply: ReplyPart, here: Here): readonly Fact[] {
  if (reply.type !== 'text' && reply.type !== 'reasoning') return []
  const streamed = attempt.drafts.find(({ part }) => part === reply.part)?.text ?? ''
  const text = reply.text.slice(streamed.length)
  if (text === '') return []
  const type = reply.type === 'text' ? 'assistant_text_delta' : 'assistant_reasoning_delta'
  return [{ type, ...here, part: reply.part, text }]
}

/** The text of a delta, as the adapter reported it. */
function recoverText({
  part,
  text,
  replaces,
  written,
}: EventOf<'assistant_text_delta' | 'assistant_reasoning_delta'>): Omit<
  SignalOf<'model_text'>,
  'type' | 'turn' | 'attempt'
> {
  return { part, text, ...omitUndefined({ replaces, written }) }
}

/** A field that the provider reported and that is not a count is represented by -1. */
function recoverUsage(here: Here, event: EventOf<'usage_updated'>): Signal {
  const { usage, refused = [], contextTokens, raw } = event
  const lies = Object.fromEntries(refused.map((field) => [field, -1]))
  return {
    type: 'model_usage',
    ...here,
    usage: { ...usage, ...lies },
    ...omitUndefined({ contextTokens, raw }),
  }
}

/** How a call ended is the last fact of its decision. A signal that breaks the contract counts as a failure. */
function recoverEnd(
  here: Here,
  _first: RuntimeEvent,
  { recorded, index }: RecordedPosition,
  attempt: Attempt,
): Signal | undefined {
  for (let at = index; at < recorded.length; at++) {
    const event = recorded[at]
    if (event?.type === 'model_stream_failed') {
      const { failure, refusal } = event
      if (refusal === undefined) return { type: 'model_failed', ...here, failure }
      return {
        type: 'model_finished',
        ...here,
        stopReason: 'refused',
        parts: listStreamedParts(attempt),
        refusal,
      }
    }
    if (event?.type !== 'assistant_message_finished') continue
    const { stopReason, rawStopReason, providerMessageId, providerState, refusal } = event
    return {
      type: 'model_finished',
      ...here,
      stopReason,
      parts: toReplyParts(event),
      ...omitUndefined({ rawStopReason, providerMessageId, providerState, refusal }),
      ...(event.written && { written: event.written.map(({ index, part }) => addPlace(event, part, index)) }),
    }
  }
  return undefined
}

function toReplyParts(event: EventOf<'assistant_message_finished'>): readonly ReplyPart[] {
  return event.parts.map((content, index): ReplyPart => {
    if (content.type !== 'tool_call') return addPlace(event, content, index)
    const { toolCallId: _own, ...call } = content
    return addPlace(event, call, index)
  })
}

/** Content at its place of the reply, which the event may say beside its index. */
function addPlace<Content extends object>(
  { places }: EventOf<'assistant_message_finished'>,
  content: Content,
  index: number,
): Content & { readonly part: number } {
  return { ...content, part: places?.[index] ?? index }
}

/** The parts of a refused reply that is passed on: those that were streamed. No other part of it is recorded. */
function listStreamedParts({ drafts, calls }: Attempt): readonly ReplyPart[] {
  const texts = drafts.map(({ part, kind, text }): ReplyPart => ({ type: kind, text, part }))
  const requested = calls.map(({ part, providerCallId, name, input }): ReplyPart => {
    return { type: 'tool_call', providerCallId, name, input, part }
  })
  return [...texts, ...requested].sort((one, other) => one.part - other.part)
}

/** Every signal of guardrails, of the check of an answer, and of a summing-up model. */
export const checkSignals: {
  readonly [T in 'guardrails_checked' | 'output_checked' | 'summarized']: SignalRules<T>
} = {
  guardrails_checked: { decide: decideGuardrailsChecked, recover: recoverGuardrails },
  output_checked: {
    decide: decideOutputChecked,
    recover(_state, { recorded, index }) {
      const event = recorded[index]
      if (event?.type !== 'output_checked') return undefined
      const { valid, output = null, error = '', turn } = event
      const verdict = valid ? ({ valid, output } as const) : ({ valid, error } as const)
      return { type: 'output_checked', turn, verdict }
    },
  },
  summarized: {
    decide: (state, signal) =>
      state.compacting && !state.compacting.interrupted && signal.turn === state.turn
        ? { facts: [toSummaryFact(state, state.compacting, signal)] }
        : nothing,
    recover(_state, { recorded, index }) {
      const event = recorded[index]
      if (event?.type !== 'context_compacted') return undefined
      const { summary, usage, failure, turn } = event
      const answer = failure ? { failure } : { text: readSummaryText(summary) }
      return { type: 'summarized', turn, answer, ...omitUndefined({ usage }) }
    },
  },
}

function decideGuardrailsChecked(state: RunState, signal: SignalOf<'guardrails_checked'>): Decision {
  const { on, guardrails, finds } = signal
  if (!isCheckDue(state, signal)) return nothing
  return {
    facts: [
      ...finds.map((find) => toTripFact(state, on, find)),
      { type: 'guardrails_checked', turn: state.turn, on, guardrails },
    ],
  }
}

function isCheckDue(state: RunState, { on, place, guardrails }: SignalOf<'guardrails_checked'>): boolean {
  switch (on) {
    case 'input': {
      const { seq, guardrails: due = [] } = state.inputCheck ?? {}
      return seq === place && guardrails.some((name) => due.includes(name))
    }
    case 'output':
      return (
        place === state.turn && state.phase === 'collecting' && findDueAnswerCheck(state) === 'guardrails'
      )
    case 'tool_output':
      return place === state.turn && state.phase === 'executing' && isResultsCheckDue(state)
  }
}

/** The fact of a find. An input that is at work already cannot be replaced any more: that blocks. */
function toTripFact(
  state: RunState,
  on: Extract<Fact, { type: 'guardrail_tripped' }>['on'],
  { guardrail, action, detail, index, toolCallId, replacement }: GuardrailFind,
): Fact {
  const late = on === 'input' && action === 'replace' && state.phase !== 'idle' && !state.inputSinceReply
  return {
    type: 'guardrail_tripped',
    turn: state.turn,
    guardrail,
    on,
    action: late ? 'block' : action,
    ...omitUndefined({ toolCallId, detail, index }),
    ...(late ? {} : omitUndefined({ replacement })),
  }
}

function decideOutputChecked(state: RunState, { turn, verdict }: SignalOf<'output_checked'>): Decision {
  if (state.phase !== 'collecting' || findDueAnswerCheck(state) !== 'schema') return nothing
  if (turn !== state.turn) return nothing
  const here = { type: 'output_checked' as const, turn: state.turn }
  if (verdict.valid) return { facts: [{ ...here, valid: true, output: verdict.output }] }
  const { error } = verdict
  const { output } = state.definition
  const mayRepair = output && !state.reply.finalizing && state.repairs < output.maxRepairs
  if (!mayRepair) return { facts: [{ ...here, valid: false, error }] }
  // Each repair request repeats the schema: not every wire has shown it to the model, and a fallback may not have seen it yet.
  const text = `Your answer does not fit the schema that it has to fit: ${error}
This is the schema (JSON Schema): ${toCanonicalJson(output.schema)}
Write the whole answer again, as JSON that fits the schema, and nothing else.`
  const repair: UserMessage = { role: 'user', parts: [{ type: 'text', text }] }
  return { facts: [{ ...here, valid: false, error, repair }] }
}

interface ToolRules<T extends 'tool_progressed' | 'tool_deferred' | 'tool_ended'> {
  decide(state: RunState, call: Call, signal: SignalOf<T>, stamp: Stamp): Decision
  recover(event: RuntimeEvent, state: RunState): SignalOf<T> | undefined
}

/** Rules for the attempt of a call that is under way. Signals of any other attempt come too late to count. */
function whileAtWork<T extends 'tool_progressed' | 'tool_deferred' | 'tool_ended'>(
  rules: ToolRules<T>,
): SignalRules<T> {
  return {
    decide(state, signal, stamp) {
      const { toolCallId, attempt } = signal as SignalOf<'tool_ended'>
      const call = findCall(state, toolCallId)
      if (call === undefined || !isAtWork(call) || call.attempts !== attempt) return nothing
      const about = signal as SignalOf<'tool_progressed' | 'tool_deferred' | 'tool_ended'>
      if (about.type !== 'tool_progressed' && state.background?.some((beside) => beside === call))
        return recordOne(toBackgroundFact(state, call, about))
      return rules.decide(state, call, signal, stamp)
    },
    recover(state, { recorded, index }) {
      const event = recorded[index]
      return event && rules.recover(event, state)
    },
  }
}

/** Every signal about tool calls. */
export const toolSignals: {
  readonly [
    T in 'calls_checked' | 'tool_progressed' | 'tool_deferred' | 'tool_ended' | 'call_reconciled'
  ]: SignalRules<T>
} = {
  // The record cannot restore this check: the agent is asked again.
  calls_checked: { decide: decideCallsChecked, recover: () => undefined },
  tool_progressed: whileAtWork({
    decide(state, { toolCallId }, { attempt, data, spent }) {
      const isShown = isRecorded(state, 'toolProgress')
      if (!isShown && spent === undefined) return nothing
      const fact = { type: 'tool_progress' as const, turn: state.turn, toolCallId, attempt }
      return { facts: [{ ...fact, data: isShown ? data : null, ...omitUndefined({ spent }) }] }
    },
    recover(event) {
      if (event.type !== 'tool_progress') return undefined
      const { toolCallId, attempt, data, spent } = event
      return { type: 'tool_progressed', toolCallId, attempt, data, ...omitUndefined({ spent }) }
    },
  }),
  tool_deferred: whileAtWork({
    decide({ turn }, { status, toolCallId }, { attempt, externalId, deadlineMs }, stamp) {
      if (status !== 'started') return nothing
      const deadlineAt = deadlineMs === undefined ? undefined : addMs(stamp.at, deadlineMs)
      const fact = { type: 'tool_deferred' as const, turn, toolCallId, attempt, receipt: externalId }
      return { facts: [{ ...fact, ...omitUndefined({ deadlineAt }) }] }
    },
    recover(event) {
      if (event.type === 'background_ended') {
        const { toolCallId, attempt } = event
        // What it would have been settled under is not on record: nobody waits for it.
        return { type: 'tool_deferred', toolCallId, attempt, externalId: toolCallId }
      }
      if (event.type !== 'tool_deferred') return undefined
      const { toolCallId, attempt, receipt, deadlineAt, at } = event
      const deadlineMs = deadlineAt === undefined ? undefined : deadlineAt - at
      return {
        type: 'tool_deferred',
        toolCallId,
        attempt,
        externalId: receipt,
        ...omitUndefined({ deadlineMs }),
      }
    },
  }),
  tool_ended: whileAtWork({ decide: decideToolEnded, recover: recoverToolEnded }),
  call_reconciled: {
    decide: decideCallReconciled,
    recover(_state, { recorded, index }) {
      const event = recorded[index]
      if (event?.type !== 'tool_started' && event?.type !== 'tool_result') return undefined
      const { toolCallId } = event
      const recovered = (finding: Reconciliation): Signal => ({
        type: 'call_reconciled',
        toolCallId,
        finding,
      })
      if (event.type === 'tool_started') return recovered({ state: 'not_done' })
      const { outcome, content } = event
      return recovered(outcome === 'interrupted' ? { state: 'unknown' } : { state: 'done', outcome, content })
    },
  },
}

/** The end of work in the background. One that would be settled later has nobody who waits for that, and has failed. */
function toBackgroundFact(
  state: RunState,
  call: Call,
  signal: SignalOf<'tool_ended'> | SignalOf<'tool_deferred'>,
): FactOf<'background_ended'> {
  if (signal.type === 'tool_deferred') {
    const text =
      'The tool left its work to be settled later, which work in the background cannot be. It may have begun.'
    return endInBackground(state, call, {
      outcome: 'failed',
      content: toTextContent('failed', text),
      durationMs: 0,
    })
  }
  const { outcome, durationMs } = signal
  const content = correctMediaTypes(signal.content)
  const shown = correctMediaTypes(signal.shown ?? signal.projected ?? signal.content)
  const error = isRecorded(state, 'toolErrors') ? signal.error : undefined
  return endInBackground(state, call, { outcome, content, shown, durationMs, ...omitUndefined({ error }) })
}

function decideCallsChecked(state: RunState, signal: SignalOf<'calls_checked'>): Decision {
  if (state.phase !== 'collecting' || signal.turn !== state.turn) return nothing
  // Nothing of them will run any more: the controller closes them.
  if (state.cancel || state.blocked) return nothing
  const checks = new Map(signal.calls.map((check) => [check.toolCallId, check]))
  const calls = state.calls.map((call) => toCollectedCall(state, call, checks.get(call.toolCallId)))
  const trips = signal.calls.flatMap(({ toolCallId, finds = [] }) =>
    finds.map((find) => toTripFact(state, 'tool_input', { ...find, toolCallId })),
  )
  return { facts: [...trips, { type: 'tool_requests_collected', turn: state.turn, calls }] }
}

function decideToolEnded(
  state: RunState,
  call: Call,
  signal: SignalOf<'tool_ended'>,
  stamp: Stamp,
): Decision {
  const { name, toolCallId } = call
  const here = { turn: state.turn, toolCallId }
  const { attempt, outcome, durationMs, child, reused, retryAfterMs } = signal
  const content = correctMediaTypes(signal.content)
  const projected = signal.projected && correctMediaTypes(signal.projected)
  const shown = signal.shown && correctMediaTypes(signal.shown)
  const error = isRecorded(state, 'toolErrors') ? signal.error : undefined
  // Another attempt starts within the time of the run, or the ending is the result.
  const mayTryAgain = mayRetry(call, outcome) && !isStopping(state)
  const retryAt = mayTryAgain ? computeToolRetryAt(call, signal, stamp) : undefined
  if (retryAt !== undefined && retryAt < getWorkDeadline(state)) {
    const failed = { type: 'tool_attempt_failed' as const, ...here, name, attempt, outcome, content }
    return { facts: [{ ...failed, durationMs, retryAt, ...omitUndefined({ retryAfterMs, error }) }] }
  }
  const result = { type: 'tool_result' as const, ...here, name, outcome, content, durationMs }
  const { failures = 0 } = call.tries ?? {}
  if (!signal.retryable || failures === 0)
    return { facts: [{ ...result, ...omitUndefined({ projected, shown, child, reused, error }) }] }
  // Trying again did not help. Each form says so: the model reads the last one.
  const more = toTextContent('failed', `All ${failures + 1} attempts of this call have failed.`)
  const forms = { projected: projected && [...projected, ...more], shown: shown && [...shown, ...more] }
  const whole = { ...result, content: [...content, ...more] }
  return { facts: [{ ...whole, ...omitUndefined({ ...forms, child, reused, error }) }] }
}

function recoverToolEnded(event: RuntimeEvent, state: RunState): SignalOf<'tool_ended'> | undefined {
  if (event.type === 'tool_attempt_failed') {
    const { toolCallId, attempt, outcome, content, durationMs, retryAfterMs, error } = event
    const ended = { type: 'tool_ended' as const, toolCallId, attempt, outcome, content, durationMs }
    return { ...ended, retryable: true, ...omitUndefined({ retryAfterMs, error }) }
  }
  if (event.type === 'background_ended') {
    const { toolCallId, attempt, outcome, content, durationMs = 0, message, error } = event
    const [, ...shown] = (message?.parts ?? []) as readonly ResultPart[]
    const ended = { type: 'tool_ended' as const, toolCallId, attempt, outcome, content, durationMs }
    return { ...ended, ...(!isSameJson(shown, content) && { shown }), ...omitUndefined({ error }) }
  }
  if (event.type !== 'tool_result') return undefined
  const { toolCallId, outcome, content, durationMs = 0, projected, shown, child, reused, error } = event
  return {
    type: 'tool_ended',
    toolCallId,
    // Only the attempt that is under way counts.
    attempt: findCall(state, toolCallId)?.attempts ?? 0,
    outcome,
    content,
    durationMs,
    ...omitUndefined({ projected, shown, child, reused, error }),
  }
}

function toCollectedCall(state: RunState, call: Call, check: CheckedCall | undefined): CollectedCall {
  const { toolCallId, name } = call
  if (call.inputRemoved) {
    return { toolCallId, name, inputDigest: computeDigest(call.input), plan: 'settle', refusal: removedInput }
  }
  const unknown: CallVerdict = { kind: 'refuse', outcome: 'unknown_tool', text: `There is no tool ${name}.` }
  const {
    verdict = unknown,
    toolCallId: _own,
    finds: _recorded,
    ...found
  }: Partial<CheckedCall> = check ?? {}
  // A person approves, and the tool gets, the input as the guardrails changed it.
  const base = {
    toolCallId,
    name,
    inputDigest: computeDigest(found.input ?? call.input),
    ...omitUndefined(found),
  }
  if (verdict.kind === 'refuse') {
    const { outcome, text } = verdict
    const error = isRecorded(state, 'toolErrors') ? verdict.error : undefined
    return { ...base, plan: 'settle', refusal: { outcome, text, ...omitUndefined({ error }) } }
  }
  const { reason } = verdict
  const approvers = verdict.kind === 'ask' ? verdict.approvers : undefined
  if (isHeldWrite(state, base)) {
    if (planHeldWrite(state, base) === 'stub') return { ...base, plan: 'settle', refusal: stubbed }
    return { ...base, plan: 'ask', reason: describeForkReason(reason), ...omitUndefined({ approvers }) }
  }
  return { ...base, plan: verdict.kind, ...omitUndefined({ reason, approvers }) }
}

function decideCallReconciled(
  state: RunState,
  { toolCallId, finding }: SignalOf<'call_reconciled'>,
): Decision {
  const call = findCall(state, toolCallId)
  if (call?.status !== 'in_doubt') return nothing
  const here = { turn: state.turn, toolCallId: call.toolCallId }
  const result = { type: 'tool_result' as const, ...here, name: call.name }
  switch (finding.state) {
    case 'done':
      return { facts: [{ ...result, outcome: finding.outcome, content: correctMediaTypes(finding.content) }] }
    case 'not_done':
      // A fork does not perform a write because the run that it shares it with has not.
      if (!isHeldWrite(state, call)) return { facts: [toToolStarted(state.runId, call, here)] }
      break
    case 'unknown':
  }
  return { facts: [{ ...result, outcome: 'interrupted', content: toTextContent('interrupted') }] }
}

/** The findings of guardrails come before the fact that they have checked. */
function recoverGuardrails(state: RunState, { recorded, index }: RecordedPosition): Signal | undefined {
  const end = recorded.findIndex(({ type }, at) => at >= index && type !== 'guardrail_tripped')
  const event = recorded[end]
  if (event?.type !== 'guardrails_checked' || event.on === 'tool_input') return undefined
  const finds = recorded.slice(index, end).flatMap((trip): readonly GuardrailFind[] => {
    if (trip.type !== 'guardrail_tripped') return []
    const { guardrail, action, detail, index: place, toolCallId, replacement } = trip
    return [{ guardrail, action, ...omitUndefined({ detail, index: place, toolCallId, replacement }) }]
  })
  const { on, guardrails } = event
  const place = on === 'input' ? (state.inputCheck?.seq ?? 0) : state.turn
  return { type: 'guardrails_checked', on, place, guardrails, finds }
}
