import { renderRequest } from '../../src/ollama/request.ts'
import { OllamaReader } from '../../src/ollama/stream.ts'
import type { WireLine } from '../../src/ollama/client.ts'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { request } from './collect.ts'
import type { Answer } from './loopback.ts'
import type { RenderSettings } from '../../src/ollama/options.ts'

/** Lines of Ollama's stream, written by hand: short ways to say the long forms. */
export const line = (message: object, more: object = {}) => ({
  model: 'qwen-test',
  created_at: '2026-01-01T00:00:00.000000Z',
  message: { role: 'assistant', content: '', ...message },
  done: false,
  ...more,
})
export const text = (content: string) => line({ content })
export const thinking = (words: string) => line({ thinking: words })
export const calls = (...tool_calls: object[]) => line({ tool_calls })
export const call = (name: string, given?: unknown, id?: string) => ({
  ...(id !== undefined && { id }),
  function: { index: 0, name, ...(given !== undefined && { arguments: given }) },
})
export const done = (done_reason: string | undefined = 'stop', more: object = {}) =>
  line(
    {},
    {
      done: true,
      ...(done_reason && { done_reason }),
      total_duration: 2_000_000,
      prompt_eval_count: 12,
      eval_count: 20,
      ...more,
    },
  )

/** A reply with a bit of everything, multi-byte characters included. */
export const rich: readonly object[] = [
  thinking('The user greets me — in Seoul it is 서울 weather 🌦️.'),
  thinking(' Two calls.'),
  text('Grüß dich! '),
  text('Let me look … 👋'),
  calls(call('get_weather', { city: 'Seoul', days: 3 }, 'call_a1b2c3d4')),
  calls(call('get_time'), call('get_weather', { city: 'Busan' }, 'call_a1b2c3d4')),
  text('One moment.'),
  done('stop', { prompt_eval_count: 120, eval_count: 64 }),
]

const encoder = new TextEncoder()
export const lineBytes = (lines: readonly unknown[]): Uint8Array =>
  encoder.encode(lines.map((one) => `${JSON.stringify(one)}\n`).join(''))

/** An answer of JSON lines, in these pieces. */
export const answer = (pieces: readonly (Uint8Array | string)[], more: Answer = {}): Answer => ({
  headers: { 'content-type': 'application/x-ndjson' },
  pieces,
  ...more,
})

export const settings: RenderSettings = { modelId: 'qwen-test', contextTokens: 4096, warn: () => {} }

/** All signals of a stream, and the error that ended it, if one did. */
export function fold(
  lines: readonly object[],
  { tools = [] as readonly string[], given = settings, messages = request.messages } = {},
): { signals: ModelSignal[]; error?: unknown } {
  const definitions = tools.map((name) => ({ name, description: '', inputSchema: {} }))
  const { body, names } = renderRequest({ ...request, messages, tools: definitions }, given)
  const reply = new OllamaReader(names, body)
  const signals: ModelSignal[] = []
  try {
    for (const one of lines) for (const signal of reply.read(one as WireLine)) signals.push(signal)
    return { signals }
  } catch (error) {
    return { signals, error }
  }
}
