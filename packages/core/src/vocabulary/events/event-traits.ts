import type { EventType } from './event.ts'

/** Where an event of a type is visible, and what it costs to keep. */
export interface EventTraits {
  /** The version that is written now. */
  readonly v: number
  /** Whether it adds to what the model is shown: itself, only as part of the finished message, or not at all. */
  readonly modelHistory: 'yes' | 'as_message' | 'no'
  /** Facts decide something and are kept; deltas only show progress, may be appended lazily and kept shorter. */
  readonly retention: 'facts' | 'deltas'
  /** Whether the append that holds it must be durable before anything follows from it. */
  readonly durability: 'barrier' | 'lazy'
}

const fact: EventTraits = { v: 1, modelHistory: 'no', retention: 'facts', durability: 'barrier' }
/** Since its second version, names its limits with `max` first. */
const limited: EventTraits = { ...fact, v: 2 }
const noted: EventTraits = { ...fact, durability: 'lazy' }
const history: EventTraits = { ...fact, modelHistory: 'yes' }
const delta: EventTraits = { v: 1, modelHistory: 'as_message', retention: 'deltas', durability: 'lazy' }

/** Every event type once. All are on the UI stream and in the ledger. */
export const eventTraits: { readonly [T in EventType]: EventTraits } = {
  run_started: limited,
  history_carried: history,
  history_edited: history,
  run_resumed: limited,
  run_finished: fact,
  input_received: history,
  input_settled: history,
  model_call_started: fact,
  assistant_started: noted,
  assistant_text_delta: delta,
  assistant_reasoning_delta: delta,
  tool_input_delta: { ...delta, modelHistory: 'no' },
  tool_request_ready: { ...history, durability: 'lazy' },
  usage_updated: noted,
  assistant_message_finished: history,
  model_stream_failed: fact,
  tool_requests_collected: fact,
  approval_requested: fact,
  approval_decided: fact,
  tool_started: fact,
  tool_progress: { ...delta, modelHistory: 'no' },
  tool_deferred: fact,
  tool_result: history,
  tool_results_injected: noted,
  compaction_started: fact,
  context_compacted: history,
  agent_handed_off: { ...history, v: 2 },
  guardrail_tripped: history,
  guardrails_checked: fact,
  output_checked: history,
  limit_reached: limited,
  limit_raised: limited,
  cancel_requested: fact,
}

/** Every event type once, in the order of `eventTraits`. */
export const eventTypes = Object.keys(eventTraits) as readonly EventType[]
