import type { Cause } from './cause.ts'
import type { EventType, Fact, FactOf, RuntimeEvent } from './event.ts'

/** Where an event of a type is visible, and what it costs to keep. */
export interface EventTraits<T extends EventType = EventType> {
  /** The version that is written now. */
  readonly v: number
  /** Whether it adds to what the model is shown: itself, only as part of the finished message, or not at all. */
  readonly modelHistory: 'yes' | 'as_message' | 'no'
  /** Facts decide something and are kept; deltas only show progress, may be appended lazily and kept shorter. */
  readonly retention: 'facts' | 'deltas'
  /**
   * Whether the append that holds it must be durable before anything follows from it. The result of a call that may run
   * again is lazy, and so is the first start of one that also only reads.
   */
  readonly durability: 'barrier' | 'lazy'
  /** What decides it, where nothing else is on record: always the same, or what its body says. */
  readonly cause: Cause | ((fact: FactOf<T>) => Cause)
}

type Kept = Omit<EventTraits, 'cause'>

const fact: Kept = { v: 1, modelHistory: 'no', retention: 'facts', durability: 'barrier' }
const noted: Kept = { ...fact, durability: 'lazy' }
const history: Kept = { ...fact, modelHistory: 'yes' }
const delta: Kept = { v: 1, modelHistory: 'as_message', retention: 'deltas', durability: 'lazy' }

/** Every event type once. All are on the UI stream and in the ledger. */
export const eventTraits: { readonly [T in EventType]: EventTraits<T> } = {
  run_started: { ...fact, cause: 'start' },
  history_carried: { ...history, cause: 'start' },
  history_edited: { ...history, cause: 'start' },
  run_resumed: { ...fact, cause: 'resume' },
  run_finished: { ...fact, cause: 'controller' },
  input_received: { ...history, cause: ({ delivery }) => delivery },
  input_settled: { ...history, cause: 'controller' },
  model_call_started: { ...fact, cause: 'controller' },
  assistant_started: { ...noted, cause: 'model_started' },
  assistant_text_delta: { ...delta, cause: 'model_text' },
  assistant_reasoning_delta: { ...delta, cause: 'model_reasoning' },
  tool_input_delta: { ...delta, modelHistory: 'no', cause: 'model_tool_input' },
  tool_request_ready: { ...history, durability: 'lazy', cause: 'model_tool_request' },
  usage_updated: { ...noted, cause: 'model_usage' },
  assistant_message_finished: {
    ...history,
    durability: 'lazy',
    cause: ({ partial }) => (partial ? 'controller' : 'model_finished'),
  },
  model_stream_failed: { ...fact, cause: 'model_failed' },
  tool_requests_collected: { ...noted, cause: 'calls_checked' },
  approval_requested: { ...fact, cause: 'controller' },
  approval_decided: { ...fact, cause: ({ approved }) => (approved ? 'approve' : 'deny') },
  tool_started: { ...fact, cause: 'controller' },
  tool_progress: { ...delta, modelHistory: 'no', cause: 'tool_progressed' },
  tool_deferred: { ...fact, cause: 'tool_deferred' },
  tool_attempt_failed: { ...fact, cause: 'tool_ended' },
  // Only a tool's own ending says how long it took.
  tool_result: {
    ...history,
    cause: ({ durationMs }) => (durationMs === undefined ? 'controller' : 'tool_ended'),
  },
  tool_results_injected: { ...noted, cause: 'controller' },
  compaction_started: { ...fact, cause: 'controller' },
  context_compacted: { ...history, cause: 'controller' },
  agent_handed_off: { ...history, cause: 'controller' },
  guardrail_tripped: {
    ...history,
    cause: ({ on }) => (on === 'tool_input' ? 'calls_checked' : 'guardrails_checked'),
  },
  guardrails_checked: { ...fact, cause: 'guardrails_checked' },
  output_checked: { ...history, cause: 'output_checked' },
  limit_reached: { ...fact, cause: 'controller' },
  limit_raised: { ...fact, cause: 'raise_limit' },
  cancel_requested: { ...fact, cause: 'cancel' },
}

/** Every event type once, in the order of `eventTraits`. */
export const eventTypes = Object.keys(eventTraits) as readonly EventType[]

/** What decides a fact of this type and body, where nothing else is on record. */
export function usualCause(fact: Fact | RuntimeEvent): Cause {
  const { cause } = eventTraits[fact.type] as EventTraits
  return typeof cause === 'function' ? cause(fact) : cause
}

/** What decided an event. */
export function causeOf(event: RuntimeEvent): Cause {
  return event.cause ?? usualCause(event)
}
