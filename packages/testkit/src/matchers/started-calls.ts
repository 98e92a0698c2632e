import type { RuntimeEvent } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'

/** A call whose tool was started. */
export interface StartedCall {
  readonly name: string
  /** What it ran with: what the model wrote, or what was put in its place. */
  readonly input: JsonObject
  /** The outcome of its result; `open` if it has none yet. */
  readonly outcome: string
  /** Its result as one text. */
  readonly text: string
}

/** The calls of a run that were started, in order. */
export function listCalls(events: readonly RuntimeEvent[]): readonly StartedCall[] {
  const inputs = new Map<string, JsonObject>()
  for (const event of events) {
    if (event.type === 'tool_request_ready') inputs.set(event.toolCallId, event.input)
    if (event.type === 'approval_decided' && event.input) inputs.set(event.toolCallId, event.input)
    if (event.type !== 'tool_requests_collected') continue
    for (const { toolCallId, input } of event.calls) if (input) inputs.set(toolCallId, input)
  }
  return events.flatMap((event) => {
    if (event.type !== 'tool_started' || event.attempt > 1) return []
    const { toolCallId, name } = event
    const result = events.find((each) => each.type === 'tool_result' && each.toolCallId === toolCallId)
    const { outcome = 'open', content = [] } = (result ?? {}) as {
      readonly outcome?: string
      readonly content?: readonly { readonly type: string; readonly text?: string }[]
    }
    const text = content.map((part) => part.text ?? '').join('')
    return [{ name, outcome, text, input: inputs.get(toolCallId) ?? {} }]
  })
}
