import { IllegalTransitionError, LawBrokenError, type Limits, type RunState } from '@tallystick/core'
import type { CollectedCall } from '@tallystick/core/internal'
import { audit, evolve } from '@tallystick/core/machine'
import {
  defaultRetryPolicy,
  computeDigest,
  type Fact,
  type FactOf,
  type JsonObject,
  type ModelFailure,
  type RetryPolicy,
  type StopReason,
  type ToolCallId,
  deriveToolCallId,
} from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'

/** The run that the pages of these tests are about. */
export const runId = sampleRunId(1)
const model = { provider: 'scripted', api: 'script', modelId: 'scripted-1' }

/** The first two facts of a run: it exists, and was asked something. */
export function begun(
  options: { readonly limits?: Limits; readonly retry?: Partial<RetryPolicy> } = {},
): readonly Fact[] {
  const { definition } = sampleFacts(runId).run_started
  const { price: _price, maxOutputTokens: _max, ...plain } = definition
  const { limits = {}, retry } = options
  return [
    {
      ...{ type: 'run_started', turn: 0, agent: 'agent', limits },
      definition: { ...plain, model },
      retry: { ...defaultRetryPolicy, ...retry },
    },
    { type: 'input_received', turn: 0, message: sampleMessage('Go.'), delivery: 'start' },
  ]
}

/** A model call starts. */
export function called(turn = 1, attempt = 1, more: Partial<FactOf<'model_call_started'>> = {}): Fact {
  return {
    ...{ type: 'model_call_started', turn, attempt, model, requestDigest: 'd', finalizing: false },
    ...{ grant: { turns: attempt === 1 ? 1 : 0, inputTokens: 20 } },
    ...{ toolChoice: { type: 'auto' }, ...more },
  }
}

/** Text comes in. */
export function wrote(text: string, part = 0, attempt = 1): Fact {
  return { type: 'assistant_text_delta', turn: 1, attempt, part, text }
}

/** The id of the n-th call of the first reply. */
export function callId(ordinal = 1, attempt = 1): ToolCallId {
  return deriveToolCallId(runId, 1, attempt, ordinal)
}

/** The model asks for its n-th call, at place `n - 1` of the reply. */
export function requested(ordinal = 1, name = 'look', input: JsonObject = {}): FactOf<'tool_request_ready'> {
  return {
    ...{ type: 'tool_request_ready', turn: 1, attempt: 1, part: ordinal - 1, toolCallId: callId(ordinal) },
    ...{ providerCallId: 'c', name, input },
  }
}

/** The reply is whole, and asks for these calls and nothing else. */
export function replyFinished(
  calls: readonly FactOf<'tool_request_ready'>[],
  more: Partial<FactOf<'assistant_message_finished'>> = {},
): Fact {
  const parts = calls.map(({ toolCallId, providerCallId, name, input }) => {
    return { type: 'tool_call' as const, toolCallId, providerCallId, name, input }
  })
  return {
    ...{
      type: 'assistant_message_finished',
      turn: 1,
      attempt: 1,
      stopReason: 'tool_use',
      partial: false,
      parts,
    },
    ...more,
  }
}

/** What is to become of each call: reads that run, where nothing else is said. */
export function collected(
  calls: readonly FactOf<'tool_request_ready'>[],
  more: Partial<CollectedCall> | ((ordinal: number) => Partial<CollectedCall>) = {},
): Fact {
  const collect = calls.map(({ toolCallId, name, input }, index): CollectedCall => ({
    ...{
      toolCallId,
      name,
      plan: 'run',
      inputDigest: computeDigest(input),
      effect: 'read',
      recovery: 'rerun',
    },
    ...(typeof more === 'function' ? more(index + 1) : more),
  }))
  return { type: 'tool_requests_collected', turn: 1, calls: collect }
}

/** A reply that asked for calls, up to where they may start. */
export function executing(
  names: readonly string[] = ['look'],
  more: Parameters<typeof collected>[1] = {},
  limits: Limits = {},
): readonly Fact[] {
  const calls = names.map((name, index) => requested(index + 1, name, { call: index + 1 }))
  return [...begun({ limits }), called(), ...calls, replyFinished(calls), collected(calls, more)]
}

/** The n-th call starts. */
export function startedCall(ordinal = 1, attempt = 1, name = 'look'): Fact {
  const key = `${runId}_1_1_${ordinal}`
  return {
    ...{ type: 'tool_started', turn: 1, toolCallId: callId(ordinal), name, attempt },
    ...{ idempotencyKey: key, effect: 'read' },
  }
}

/** The n-th call ends. */
export function endedCall(ordinal = 1, more: Partial<FactOf<'tool_result'>> = {}): Fact {
  return {
    ...{ type: 'tool_result', turn: 1, toolCallId: callId(ordinal), name: 'look', outcome: 'success' },
    ...{ content: [{ type: 'text', text: 'blue' }], ...more },
  }
}

/** A failed model call. */
export function failure(more: Partial<ModelFailure> = {}): ModelFailure {
  return { class: 'overloaded', message: 'Too busy.', retryable: true, ...more }
}

/** A caller asks the run to stop. */
export const cancelRequested: Fact = { type: 'cancel_requested', turn: 1 }

/** The next action, in short: its kind, and of each fact what tells it from others. */
export function pending(page: readonly Fact[], afterMs = 0): readonly unknown[] {
  const action = given(page).pending(afterMs)
  return [action.kind, ...('facts' in action ? action.facts.map(brief) : [])]
}

function brief(fact: Fact): string {
  if (fact.type === 'model_call_started') {
    const { turn, attempt, toolChoice, finalizing } = fact
    return `call turn ${turn} attempt ${attempt} ${toolChoice.type}${finalizing ? ' finalizing' : ''}`
  }
  if (fact.type === 'tool_started') return `start ${ordinalOf(fact.toolCallId)} attempt ${fact.attempt}`
  if (fact.type === 'tool_result') return `${fact.outcome} ${ordinalOf(fact.toolCallId)}`
  if (fact.type === 'run_finished') return `finish ${fact.reason}`
  if (fact.type === 'limit_reached') return `met ${fact.limit} ${fact.used} of ${fact.max} ${fact.policy}`
  if (fact.type === 'approval_requested') return `ask ${ordinalOf(fact.toolCallId)} attempt ${fact.attempt}`
  if (fact.type === 'assistant_message_finished') {
    const parts = fact.parts.map((part) => ('text' in part ? part.text : part.type))
    return `keep ${fact.stopReason} ${JSON.stringify(parts)}`
  }
  return fact.type
}

function ordinalOf(toolCallId: string): string {
  return toolCallId.slice(toolCallId.lastIndexOf('_') + 1)
}

/** A first reply without calls. */
export function answered(stopReason: StopReason, limits: Limits = {}): readonly Fact[] {
  const parts = [{ type: 'text', text: 'Hm.' }] as const
  return [...begun({ limits }), called(), wrote('Hm.'), replyFinished([], { stopReason, parts })]
}

/** The law that a fact breaks in a state, and why; `sound` where it breaks none. */
export function verdict(state: RunState, fact: Fact, more: object = {}): string {
  const [event] = stampFacts(runId, [fact], { afterSeq: state.seq })
  try {
    audit(state, { ...event!, at: state.at, ...more })
    return 'sound'
  } catch (error) {
    if (!(error instanceof LawBrokenError)) throw error
    const [, detail = ''] = / at seq \d+: (.*)\. The ledger is damaged,/s.exec(error.message) ?? []
    return `${error.law}: ${detail}`
  }
}

/** The state after one more fact, and what is to be different before it. */
export function after(page: readonly Fact[], fact: Fact, more: Partial<RunState> = {}): RunState {
  const state = { ...given(page).state!, ...more } as RunState
  return evolve(state, stampFacts(runId, [fact], { afterSeq: state.seq })[0]!)
}

/** Why the fold refuses a fact; `taken` where it does not. */
export function refusal(page: readonly Fact[], fact: Fact, more: Partial<RunState> = {}): string {
  try {
    after(page, fact, more)
    return 'taken'
  } catch (error) {
    if (!(error instanceof IllegalTransitionError)) throw error
    return error.message
  }
}
