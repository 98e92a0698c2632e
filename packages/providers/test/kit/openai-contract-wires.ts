import type { HttpWire } from '@tallystick/testkit/contract'
import { openai, openaiChat } from '../../src/openai.ts'
import { dataRecord, sseRecord } from './bytes.ts'
import { brokenChatRules } from './chat-rules.ts'
import type { Loose } from './loose.ts'
import * as wire from './openai-streams.ts'
import { brokenResponsesRules } from './responses-rules.ts'

const secret = 'sk-proj-veryverysecret'
const refusal = (status: number, message: string): string =>
  JSON.stringify({ error: { message, type: 'some_error', param: null, code: null, status } })
const halves = (text: string): readonly [string, string] => {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)]
}

/** Chat Completions, for whatever adapter reads it. */
export const chatWire: HttpWire = {
  model: (baseURL) => openaiChat('gpt-test', { apiKey: secret, baseURL }),
  contentType: 'text/event-stream',
  secret,
  reply({ reasoning = [], text = [], calls = [], stop, usage }) {
    const events = [
      wire.role,
      ...reasoning.map((reasoning_content) => wire.choice({ reasoning_content })),
      ...text.map((words) => wire.content(words)),
      ...calls.flatMap(({ id, name, input }, index) =>
        wire.callPieces(index, id, name, ...halves(JSON.stringify(input))),
      ),
      wire.finish({ end: 'stop', tool_use: 'tool_calls', max_tokens: 'length' }[stop]),
    ]
    const counts = wire.chatUsage(usage.inputTokens, usage.outputTokens)
    // The reply is proved by its reason; the counts and the end come after it.
    return { events: [...events, counts].map(dataRecord).concat('data: [DONE]\n\n'), proof: events.length }
  },
  refusal,
  toolNames: (body) => (body as Loose).tools.map((tool: Loose) => tool.function.name),
  brokenRules: (body) => brokenChatRules(body),
}

/** OpenAI's Responses. */
export const responsesWire: HttpWire = {
  model: (baseURL) => openai('gpt-test', { apiKey: secret, baseURL }),
  contentType: 'text/event-stream',
  secret,
  reply({ reasoning = [], text = [], calls = [], stop, usage }) {
    const counts = { usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens } }
    let at = 0
    const thoughts = (): object[] => {
      const [first, ...rest] = wire.reasoning(at, 'ZW5j')
      const deltas = reasoning.map((words) =>
        wire.delta('reasoning_summary_text', at, words, { summary_index: 0 }),
      )
      const summary = [{ type: 'summary_text', text: reasoning.join('') }]
      const item = { ...(rest[0] as Loose).item, summary }
      return [first!, ...deltas, wire.itemDone(at++, item)]
    }
    const events = wire.counted(
      wire.created(),
      reasoning.length > 0 ? thoughts() : [],
      text.length > 0 ? wire.message(at++, ...text) : [],
      ...calls.map(({ id, name, input }) =>
        wire.functionCall(at++, id, name, ...halves(JSON.stringify(input))),
      ),
      stop === 'max_tokens' ? wire.incomplete('max_output_tokens', counts) : wire.completed(counts),
    )
    return { events: events.map(sseRecord) }
  },
  refusal,
  toolNames: (body) => (body as Loose).tools.map((tool: Loose) => tool.name),
  brokenRules: (body) => brokenResponsesRules(body),
}
