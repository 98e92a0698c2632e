import type { HttpWire } from '@tallystick/testkit/contract'
import { anthropic } from '../../src/anthropic.ts'
import { ollama } from '../../src/ollama.ts'
import { sseRecord } from './bytes.ts'
import { brokenRules as brokenByAnthropic } from './history-rules.ts'
import type { Loose } from './loose.ts'
import { brokenRules as brokenByOllama } from './ollama-history-rules.ts'
import * as lines from './ollama-lines.ts'
import { close, delta, done, json, open, start, stop, text } from './streams.ts'

const secret = 'sk-ant-api03-veryverysecret'

/** Anthropic Messages, for whatever adapter reads it. */
export const anthropicWire: HttpWire = {
  model: (baseURL) => anthropic('claude-test-1', { apiKey: secret, baseURL }),
  contentType: 'text/event-stream',
  secret,
  reply({ reasoning = [], text: words = [], calls = [], stop: reason, usage }) {
    const input = { input_tokens: usage.inputTokens, output_tokens: 1 }
    const events: object[] = [start({ usage: input })]
    let index = 0
    if (reasoning.length > 0) {
      events.push(open(index, { type: 'thinking', thinking: '', signature: '' }))
      for (const thinking of reasoning) events.push(delta(index, { type: 'thinking_delta', thinking }))
      events.push(delta(index, { type: 'signature_delta', signature: 'c2ln' }), close(index++))
    }
    if (words.length > 0) {
      events.push(
        open(index, { type: 'text', text: '' }),
        ...words.map((word) => text(index, word)),
        close(index++),
      )
    }
    for (const { id, name, input: given } of calls) {
      const written = JSON.stringify(given)
      const middle = Math.ceil(written.length / 2)
      events.push(open(index, { type: 'tool_use', id, name, input: {} }), json(index, ''))
      if (written !== '{}')
        events.push(json(index, written.slice(0, middle)), json(index, written.slice(middle)))
      events.push(close(index++))
    }
    const raw = { end: 'end_turn', tool_use: 'tool_use', max_tokens: 'max_tokens' }[reason]
    events.push({ ...done(raw), usage: { output_tokens: usage.outputTokens } }, stop)
    return { events: events.map(sseRecord) }
  },
  refusal: (status, message) => {
    const types: Record<number, string> = {
      400: 'invalid_request_error',
      401: 'authentication_error',
      403: 'permission_error',
      404: 'not_found_error',
      429: 'rate_limit_error',
      503: 'overloaded_error',
    }
    return JSON.stringify({ type: 'error', error: { type: types[status] ?? 'api_error', message } })
  },
  toolNames: (body) => (body as Loose).tools.map((tool: Loose) => tool.name),
  brokenRules: brokenByAnthropic,
}

/** Ollama's native chat. */
export const ollamaWire: HttpWire = {
  model: (baseURL) => ollama('qwen-test', { apiKey: secret, baseURL }),
  contentType: 'application/x-ndjson',
  secret,
  reply({ reasoning = [], text: words = [], calls = [], stop: reason, usage }) {
    const counts = { prompt_eval_count: usage.inputTokens, eval_count: usage.outputTokens }
    const events = [
      ...reasoning.map((thought) => lines.thinking(thought)),
      ...words.map((word) => lines.text(word)),
      ...calls.map(({ id, name, input }) => lines.calls(lines.call(name, input, id))),
      lines.done(reason === 'max_tokens' ? 'length' : 'stop', counts),
    ]
    return { events: events.map((event) => `${JSON.stringify(event)}\n`) }
  },
  refusal: (_, words) => JSON.stringify({ error: words }),
  toolNames: (body) => (body as Loose).tools.map((tool: Loose) => tool.function.name),
  brokenRules: brokenByOllama,
}
