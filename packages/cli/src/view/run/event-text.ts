import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, EventType, ShownChange } from '@tallystick/core/vocabulary'
import { textOf } from '@tallystick/core'
import { canonicalJson } from '@tallystick/core/vocabulary'
import { contentText, oneLine } from '../text/content-text.ts'
import { counted } from '../text/run-ending.ts'

/** The content of an event, in a few words after its type. */
export function eventText(event: RuntimeEvent, maxCharacters: number): string {
  return oneLine([event.type, ...textsOf(event)].join(' '), maxCharacters)
}

/** Events that only say how something is going, or what others beside them say too. */
const inBetween: ReadonlySet<EventType> = new Set<EventType>([
  ...([
    'assistant_started',
    'assistant_text_delta',
    'assistant_reasoning_delta',
    'tool_input_delta',
  ] as const),
  ...(['usage_updated', 'tool_progress', 'tool_results_injected', 'guardrails_checked'] as const),
])

/** Returns whether an event matters to a person who reads through a run. */
export function isOfInterest({ type }: Pick<RuntimeEvent, 'type'>): boolean {
  return !inBetween.has(type)
}

/** What tells an event of a type from another one. */
const texts: { readonly [T in EventType]?: (event: EventOf<T>) => readonly string[] } = {
  run_started: ({ agent }) => [agent],
  run_resumed: ({ definition }) => (definition === undefined ? [] : ['with another definition']),
  history_edited: ({ edits }) => [counted(edits.length, 'message')],
  input_received: ({ message }) => [contentText(message.parts)],
  model_call_started: ({ model, attempt, change }) => [model.modelId, ...again(attempt), ...changed(change)],
  assistant_message_finished: ({ parts, partial }) => [...(partial ? ['cut off'] : []), textOf(parts)],
  model_stream_failed: ({ failure }) => [failure.class],
  tool_request_ready: ({ name, input }) => [name, JSON.stringify(input)],
  tool_requests_collected: ({ calls }) =>
    calls.map(({ name, plan, input }) => {
      const guarded = input === undefined ? '' : ` with ${canonicalJson(input)}, as guardrails made it`
      return `${name}: ${plan}${guarded}`
    }),
  approval_requested: ({ name }) => [name],
  approval_decided: ({ approved, by, via, input, reason }) => {
    const who = via === undefined ? by : `${by} via ${via}`
    const why = reason === undefined ? who : `${who}: ${reason}`
    return [
      approved ? 'approved' : 'denied',
      'by',
      why,
      ...(input === undefined ? [] : ['to run with', canonicalJson(input)]),
    ]
  },
  tool_started: ({ name, attempt }) => [name, ...again(attempt)],
  tool_deferred: ({ receipt }) => [receipt],
  tool_attempt_failed: ({ name, attempt, outcome, content }) => [
    name,
    `attempt ${attempt}`,
    outcome,
    contentText(content),
  ],
  tool_result: ({ name, outcome, content, reused }) => [
    name,
    outcome,
    ...(reused === undefined ? [] : ['(from the record)']),
    contentText(content),
  ],
  compaction_started: ({ model, replacedMessages }) => [model.modelId, counted(replacedMessages, 'message')],
  context_compacted: ({ replacedMessages }) => [counted(replacedMessages, 'message')],
  agent_handed_off: ({ to }) => [to],
  guardrail_tripped: ({ guardrail, on, action }) => [guardrail, on, action],
  output_checked: ({ valid }) => [valid ? 'fits' : 'does not fit'],
  limit_reached: ({ limit, max }) => [limit, `${max}`],
  limit_raised: ({ limit, max }) => [limit, `${max}`],
  cancel_requested: ({ reason = '' }) => [reason],
  run_finished: ({ reason }) => [reason],
}

/** Which parts of the request the agent's code made others. */
function changed(change: ShownChange = {}): readonly string[] {
  const { sourced: _tools, shown, ...others } = change
  const parts = [...Object.keys(others), ...(shown ? ['messages'] : [])]
  return parts.length === 0 ? [] : [`with its own ${parts.join(', ')}`]
}

function again(attempt: number): readonly string[] {
  return attempt === 1 ? [] : [`attempt ${attempt}`]
}

function textsOf(event: RuntimeEvent): readonly string[] {
  const ofType = texts[event.type] as ((event: RuntimeEvent) => readonly string[]) | undefined
  return ofType?.(event) ?? []
}
