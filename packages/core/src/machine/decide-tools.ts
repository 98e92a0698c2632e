import { correctMediaTypes, type UserMessage } from '../events/content.ts'
import type { CollectedCall, EventOf, Fact, RuntimeEvent } from '../events/event.ts'
import { canonicalJson, omitUndefined } from '../values/json.ts'
import type { CallVerdict, CheckedCall, GuardrailFind, Reconciliation, Signal } from '../events/signals.ts'
import { toSummaryFact, readSummaryText } from './compaction.ts'
import {
  type Decision,
  nothing,
  type RecordedPosition,
  type SignalOf,
  type SignalRules,
  type Stamp,
} from './rules.ts'
import { findDueAnswerCheck, isResultsCheckDue } from './required-effects.ts'
import type { Call, RunState } from './state.ts'
import { momentAfter } from '../events/event-parts.ts'
import { digestOf } from '../values/digest.ts'
import {
  planHeldWrite,
  isHeldWrite,
  mayRetry,
  isStopping,
  describeForkReason,
  stubbed,
  computeToolRetryAt,
} from './retry.ts'
import { isRecorded, getWorkDeadline } from './budget.ts'
import { findCall, isAtWork, removedInput, toToolStarted, textContent } from './calls.ts'

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
This is the schema (JSON Schema): ${canonicalJson(output.schema)}
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
  // Whether calls may run is asked of the agent again: the record does not give it back.
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
      const deadlineAt = deadlineMs === undefined ? undefined : momentAfter(stamp.at, deadlineMs)
      const fact = { type: 'tool_deferred' as const, turn, toolCallId, attempt, receipt: externalId }
      return { facts: [{ ...fact, ...omitUndefined({ deadlineAt }) }] }
    },
    recover(event) {
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
      return { type: 'call_reconciled', toolCallId: event.toolCallId, finding: recoverFinding(event) }
    },
  },
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
  // Trying again did not help. Each form says it: the model reads the last that there is.
  const more = textContent('failed', `All ${failures + 1} attempts of this call have failed.`)
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
    return { toolCallId, name, inputDigest: digestOf(call.input), plan: 'settle', refusal: removedInput }
  }
  const unknown: CallVerdict = { kind: 'refuse', outcome: 'unknown_tool', text: `There is no tool ${name}.` }
  const {
    verdict = unknown,
    toolCallId: _own,
    finds: _recorded,
    ...found
  }: Partial<CheckedCall> = check ?? {}
  // What a person is asked about, and what runs, is what the guardrails made of the input.
  const base = { toolCallId, name, inputDigest: digestOf(found.input ?? call.input), ...omitUndefined(found) }
  if (verdict.kind === 'refuse') {
    const { outcome, text } = verdict
    const error = isRecorded(state, 'toolErrors') ? verdict.error : undefined
    return { ...base, plan: 'settle', refusal: { outcome, text, ...omitUndefined({ error }) } }
  }
  const reason = verdict.kind === 'ask' ? verdict.reason : undefined
  if (isHeldWrite(state, base)) {
    if (planHeldWrite(state, base) === 'stub') return { ...base, plan: 'settle', refusal: stubbed }
    return { ...base, plan: 'ask', reason: describeForkReason(reason) }
  }
  return { ...base, plan: verdict.kind, ...omitUndefined({ reason }) }
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
  return { facts: [{ ...result, outcome: 'interrupted', content: textContent('interrupted') }] }
}

function recoverFinding(event: EventOf<'tool_started'> | EventOf<'tool_result'>): Reconciliation {
  if (event.type === 'tool_started') return { state: 'not_done' }
  const { outcome, content } = event
  return outcome === 'interrupted' ? { state: 'unknown' } : { state: 'done', outcome, content }
}

/** The findings of guardrails come before the fact that they have checked. */
function recoverGuardrails(state: RunState, { recorded, index }: RecordedPosition): Signal | undefined {
  const end = recorded.findIndex(({ type }, at) => at >= index && type !== 'guardrail_tripped')
  const event = recorded[end]
  if (event?.type !== 'guardrails_checked' || event.on === 'tool_input') return undefined
  const finds = recorded
    .slice(index, end)
    .flatMap((trip) => (trip.type === 'guardrail_tripped' ? [recoverFind(trip)] : []))
  const { on, guardrails } = event
  const place = on === 'input' ? (state.inputCheck?.seq ?? 0) : state.turn
  return { type: 'guardrails_checked', on, place, guardrails, finds }
}

function recoverFind(trip: EventOf<'guardrail_tripped'>): GuardrailFind {
  const { guardrail, action, detail, index, toolCallId, replacement } = trip
  return { guardrail, action, ...omitUndefined({ detail, index, toolCallId, replacement }) }
}
