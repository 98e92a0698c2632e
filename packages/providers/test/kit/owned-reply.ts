import type { Message, Model } from '@tallystick/core'
import type { AssistantPart, ModelSignal, ToolCallId } from '@tallystick/core/vocabulary'
import { finished, request } from './collect.ts'

/** The history that a reply leads to: its calls under ids of ours, and answered; or else another word of the user. */
export function historyBehind(model: Model, signals: readonly ModelSignal[]): readonly Message[] {
  const { parts, stopReason } = finished(signals)!
  const owned = parts.map(({ part, ...rest }): AssistantPart =>
    rest.type === 'tool_call'
      ? { ...rest, toolCallId: `call_${'0'.repeat(32)}_1_1_${part}` as ToolCallId }
      : rest,
  )
  const results = owned
    .filter((part) => part.type === 'tool_call')
    .map(({ toolCallId, name }) => ({ toolCallId, name, outcome: 'success' as const, content: [] }))
  return [
    ...request.messages,
    { role: 'assistant', parts: owned, model, stopReason, partial: false },
    results.length > 0
      ? { role: 'tool', results }
      : { role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
  ]
}
