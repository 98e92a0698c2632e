import type { EventType } from '@tallystick/core/vocabulary'

/** The types that come in every turn. Their events may share a row with neighbours; every other event has its own. */
export const sharedTypes: readonly EventType[] = [
  ...([
    'model_call_started',
    'assistant_started',
    'assistant_text_delta',
    'assistant_reasoning_delta',
  ] as const),
  ...(['tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished'] as const),
  ...(['tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result'] as const),
  'tool_results_injected',
]

const shared: ReadonlySet<string> = new Set(sharedTypes)

/** Whether events of a type may share a row with events of other types. */
export function isSharedType(type: string): boolean {
  return shared.has(type)
}
