import type { Command } from '../../vocabulary/events/command.ts'
import type { ResultPart } from '../../vocabulary/model/content.ts'
import type { CollectedCall } from '../../vocabulary/events/event.ts'
import { momentAfter } from '../../vocabulary/events/moment.ts'
import { correctMediaTypes } from '../../vocabulary/model/media-type.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { CheckedCall, Signal } from '../../vocabulary/signals/signal.ts'
import { tripFact } from './decide-check-signal.ts'
import { nothing, type Decision, type Stamp } from '../state/decision.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import { heldBackPlan, isHeldBack, reasonInFork, stubbed } from '../limits/fork-writes.ts'
import { workDeadline } from '../limits/deadlines.ts'
import { isRecorded } from '../limits/recorded-parts.ts'
import { mayRetry, nothingMoreStarts, toolRetryAt } from '../limits/retry.ts'
import { removedInput, textContent } from '../messages/outcome-text.ts'
import type { Call, RunState, Tries } from '../state/state.ts'
import { findCall, isAtWork } from '../state/state-views.ts'
import { startOf } from '../state/tool-start.ts'

type AnyToolSignal = Extract<
  Signal,
  { readonly type: 'calls_checked' | 'tool_progressed' | 'tool_deferred' | 'tool_ended' | 'call_reconciled' }
>

const toolSignals: ReadonlySet<string> = new Set<AnyToolSignal['type']>([
  'calls_checked',
  'tool_progressed',
  'tool_deferred',
  'tool_ended',
  'call_reconciled',
])

/** Whether a message is a report about tool calls. */
export function isToolSignal(message: Command | Signal): message is AnyToolSignal {
  return toolSignals.has(message.type)
}

/** What follows from a report about tool calls. Reports about an ended call are ignored. */
export function decideToolSignal(state: RunState, signal: AnyToolSignal, stamp: Stamp): Decision {
  if (signal.type === 'calls_checked') return decideCallsChecked(state, signal)
  const call = findCall(state, signal.toolCallId)
  if (call === undefined) return nothing
  const { toolCallId } = call
  const here = { turn: state.turn, toolCallId }
  if (signal.type === 'call_reconciled') return decideCallReconciled(state, call, here, signal)
  return isAtWork(call) && call.attempts === signal.attempt
    ? decideToolReport(state, call, signal, stamp)
    : nothing
}

function decideCallsChecked(state: RunState, signal: Extract<Signal, { type: 'calls_checked' }>): Decision {
  if (state.phase !== 'collecting' || signal.turn !== state.turn) return nothing
  // Nothing of them will run any more: the controller closes them.
  if (state.cancel || state.blocked) return nothing
  const checks = new Map(signal.calls.map((check) => [check.toolCallId, check]))
  const calls = state.calls.map((call) => collectedCall(state, call, checks.get(call.toolCallId)))
  const trips = signal.calls.flatMap(({ toolCallId, finds = [] }) =>
    finds.map((find) => tripFact(state, 'tool_input', { ...find, toolCallId })),
  )
  return { facts: [...trips, { type: 'tool_requests_collected', turn: state.turn, calls }] }
}

type Report = Extract<Signal, { readonly type: 'tool_progressed' | 'tool_deferred' | 'tool_ended' }>

function decideToolReport(state: RunState, call: Call, signal: Report, stamp: Stamp): Decision {
  const { name, status, toolCallId } = call
  const here = { turn: state.turn, toolCallId }
  switch (signal.type) {
    case 'tool_progressed':
      if (!isRecorded(state, 'toolProgress')) return nothing
      return { facts: [{ type: 'tool_progress', ...here, attempt: signal.attempt, data: signal.data }] }
    case 'tool_deferred': {
      if (status !== 'started') return nothing
      const { attempt, externalId, deadlineMs } = signal
      const deadlineAt = deadlineMs === undefined ? undefined : momentAfter(stamp.at, deadlineMs)
      return {
        facts: [
          { type: 'tool_deferred', ...here, attempt, receipt: externalId, ...omitUndefined({ deadlineAt }) },
        ],
      }
    }
    case 'tool_ended': {
      const { attempt, outcome, durationMs, child, reused, retryAfterMs } = signal
      const content = correctMediaTypes(signal.content)
      const projected = signal.projected && correctMediaTypes(signal.projected)
      const shown = signal.shown && correctMediaTypes(signal.shown)
      const error = isRecorded(state, 'toolErrors') ? signal.error : undefined
      const retryAt = retryTime(state, call, signal, stamp)
      if (retryAt !== undefined) {
        const failed = { type: 'tool_attempt_failed' as const, ...here, name, attempt, outcome, content }
        return { facts: [{ ...failed, durationMs, retryAt, ...omitUndefined({ retryAfterMs, error }) }] }
      }
      const result = { type: 'tool_result' as const, ...here, name, outcome, content, durationMs }
      const more = signal.retryable && call.tries ? usedUp(call.tries) : []
      if (more.length === 0)
        return { facts: [{ ...result, ...omitUndefined({ projected, shown, child, reused, error }) }] }
      // Each form says it: the model reads the last that there is.
      const forms = { projected: projected && [...projected, ...more], shown: shown && [...shown, ...more] }
      const whole = { ...result, content: [...content, ...more] }
      return { facts: [{ ...whole, ...omitUndefined({ ...forms, child, reused, error }) }] }
    }
  }
}

/** Says after the last failure of a call that trying again did not help. */
function usedUp({ failures }: Tries): readonly ResultPart[] {
  return failures === 0 ? [] : textContent('failed', `All ${failures + 1} attempts of this call have failed.`)
}

/** When a call is tried again whose attempt ended so; `undefined`: it is not, and the ending is its result. */
function retryTime(
  state: RunState,
  call: Call,
  signal: Extract<Signal, { readonly type: 'tool_ended' }>,
  stamp: Stamp,
): number | undefined {
  if (!mayRetry(call, signal.outcome) || nothingMoreStarts(state)) return undefined
  const retryAt = toolRetryAt(call, signal, stamp)
  return retryAt !== undefined && retryAt < (workDeadline(state) ?? Infinity) ? retryAt : undefined
}

/** What the check found out about the tool and the input of a call. */
function knownOf(check: CheckedCall | undefined): Omit<CheckedCall, 'toolCallId' | 'verdict' | 'finds'> {
  if (check === undefined) return {}
  const { effect, recovery, retry, serial, maxConcurrency, repeats, child, handoff } = check
  const { input, repairs, recorded } = check
  const place = omitUndefined({ serial, maxConcurrency, repeats, child, handoff })
  return { ...omitUndefined({ effect, recovery, retry, input, repairs, recorded }), ...place }
}

function collectedCall(state: RunState, call: Call, check: CheckedCall | undefined): CollectedCall {
  if (call.inputRemoved) {
    const { toolCallId, name, input } = call
    return { toolCallId, name, inputDigest: digestOf(input), plan: 'settle', refusal: removedInput }
  }
  const { input: replaced } = check ?? {}
  const base = {
    // What a person is asked about, and what runs, is what the guardrails made of the input.
    toolCallId: call.toolCallId,
    name: call.name,
    inputDigest: digestOf(replaced ?? call.input),
    ...knownOf(check),
  }
  const verdict = check?.verdict ?? {
    kind: 'refuse',
    outcome: 'unknown_tool',
    text: `There is no tool ${call.name}.`,
  }
  if (verdict.kind !== 'refuse' && isHeldBack(state, base)) {
    if (heldBackPlan(state, base) === 'stub') return { ...base, plan: 'settle', refusal: stubbed }
    return { ...base, plan: 'ask', reason: reasonInFork(verdict.kind === 'ask' ? verdict.reason : undefined) }
  }
  switch (verdict.kind) {
    case 'run':
      return { ...base, plan: 'run' }
    case 'ask':
      return { ...base, plan: 'ask', ...(verdict.reason !== undefined && { reason: verdict.reason }) }
    case 'refuse':
      return { ...base, plan: 'settle', refusal: { outcome: verdict.outcome, text: verdict.text } }
  }
}

function decideCallReconciled(
  state: RunState,
  call: Call,
  here: { readonly turn: number; readonly toolCallId: Call['toolCallId'] },
  signal: Extract<Signal, { type: 'call_reconciled' }>,
): Decision {
  if (call.status !== 'in_doubt') return nothing
  const { finding } = signal
  const result = { type: 'tool_result' as const, ...here, name: call.name }
  switch (finding.state) {
    case 'done':
      return { facts: [{ ...result, outcome: finding.outcome, content: correctMediaTypes(finding.content) }] }
    case 'not_done':
      // A fork does not perform a write because the run that it shares it with has not.
      if (!isHeldBack(state, call)) return { facts: [startOf(state.runId, call, here)] }
      break
    case 'unknown':
  }
  return { facts: [{ ...result, outcome: 'interrupted', content: textContent('interrupted') }] }
}
