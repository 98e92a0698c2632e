import type { Cause } from './cause.ts'
import type { Fact, RuntimeEvent } from './event.ts'

/** What decides a fact of this type and body, where nothing else is on record. */
export function usualCause(fact: Fact | RuntimeEvent): Cause {
  switch (fact.type) {
    case 'run_started':
    case 'history_carried':
    case 'history_edited':
      return 'start'
    case 'run_resumed':
      return 'resume'
    case 'input_received':
      return fact.delivery
    case 'assistant_started':
      return 'model_started'
    case 'assistant_text_delta':
      return 'model_text'
    case 'assistant_reasoning_delta':
      return 'model_reasoning'
    case 'tool_input_delta':
      return 'model_tool_input'
    case 'tool_request_ready':
      return 'model_tool_request'
    case 'usage_updated':
      return 'model_usage'
    case 'assistant_message_finished':
      return fact.partial ? 'controller' : 'model_finished'
    case 'model_stream_failed':
      return 'model_failed'
    case 'tool_requests_collected':
      return 'calls_checked'
    case 'approval_decided':
      return fact.approved ? 'approve' : 'deny'
    case 'tool_progress':
      return 'tool_progressed'
    case 'tool_deferred':
      return 'tool_deferred'
    case 'tool_result':
      // Only a tool's own ending says how long it took.
      return fact.durationMs === undefined ? 'controller' : 'tool_ended'
    case 'guardrail_tripped':
      return fact.on === 'tool_input' ? 'calls_checked' : 'guardrails_checked'
    case 'guardrails_checked':
      return 'guardrails_checked'
    case 'output_checked':
      return 'output_checked'
    case 'limit_raised':
      return 'raise_limit'
    case 'cancel_requested':
      return 'cancel'
    case 'run_finished':
    case 'input_settled':
    case 'model_call_started':
    case 'approval_requested':
    case 'tool_started':
    case 'tool_results_injected':
    case 'compaction_started':
    case 'context_compacted':
    case 'agent_handed_off':
    case 'limit_reached':
      return 'controller'
  }
}

/** What decided an event. */
export function causeOf(event: RuntimeEvent): Cause {
  return event.cause ?? usualCause(event)
}
