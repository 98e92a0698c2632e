import type { Message, ModelRequest } from '@tallystick/core'
import type {
  AssistantMessage,
  AssistantPart,
  ToolCallId,
  ToolCallPart,
  ToolResult,
} from '@tallystick/core/vocabulary'
import { type RenderSettings, renderRequest } from '../../src/anthropic/request.ts'
import { request } from './collect.ts'
import type { Loose } from './loose.ts'
import { own } from './transcripts.ts'

const settings: RenderSettings = {
  modelId: 'claude-test-1',
  maxOutputTokens: 32_000,
  promptCache: 'off',
  warn: () => {},
}
const now = Date.UTC(2026, 0, 1)

/** The body that is made of a history. */
export function body(
  messages: readonly Message[],
  given: Partial<RenderSettings> = {},
  more: Partial<ModelRequest> = {},
  at = now,
): Loose {
  const all = { ...settings, ...given }
  return renderRequest({ ...request, messages, ...more }, all, { now: at }).body
}

export const user = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
export const assistant = (
  parts: readonly AssistantPart[],
  more: Partial<AssistantMessage> = {},
): AssistantMessage => ({
  role: 'assistant',
  parts,
  model: own,
  stopReason: 'end',
  partial: false,
  ...more,
})
export const id = (ordinal: number): ToolCallId => `call_${'a'.repeat(32)}_1_1_${ordinal}` as ToolCallId
export const call = (
  ordinal: number,
  providerCallId: string,
  more: Partial<ToolCallPart> = {},
): ToolCallPart => ({
  type: 'tool_call',
  toolCallId: id(ordinal),
  providerCallId,
  name: 'get_weather',
  input: { city: 'Seoul' },
  ...more,
})
export const result = (ordinal: number, more: Partial<ToolResult> = {}): ToolResult => ({
  toolCallId: id(ordinal),
  name: 'get_weather',
  outcome: 'success',
  content: [{ type: 'text', text: '21 degrees' }],
  ...more,
})
export const results = (...all: ToolResult[]): Message => ({ role: 'tool', results: all })
export const text = (words: string) => ({ type: 'text', text: words })
