import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { fromAiSdk } from '../../src/ai-sdk/index.ts'
import type { HttpWire } from '../../src/contract/index.ts'
import { anthropicWire } from './contract-wires.ts'
import { brokenRules } from './history-rules.ts'
import type { Loose } from './loose.ts'

const apiKey = 'sk-test-veryverysecret'

/** Anthropic Messages through the AI SDK's own provider. */
export const aiSdkAnthropicWire: HttpWire = {
  ...anthropicWire,
  secret: apiKey,
  model: (baseURL) => fromAiSdk(createAnthropic({ apiKey, baseURL: `${baseURL}/v1` })('claude-test-1')),
  brokenRules: (body) => brokenRules(withBlocks(body)),
}

/** The vendor takes a result's text in place of blocks, and an empty one for none; the checker knows blocks only. */
export function withBlocks(body: Loose): Loose {
  const blockOf = ({ content, ...block }: Loose) => {
    if (typeof content !== 'string') return { ...block, ...(content && { content }) }
    return { ...block, ...(content !== '' && { content: [{ type: 'text', text: content }] }) }
  }
  const messages = body.messages.map((message: Loose) => ({
    ...message,
    content: message.content.map(blockOf),
  }))
  return { ...body, messages }
}

const record = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/** Chat Completions, as far as the AI SDK's providers read it. */
const chat: Omit<HttpWire, 'model'> = {
  contentType: 'text/event-stream',
  secret: apiKey,
  reply({ reasoning = [], text = [], calls = [], stop, usage }) {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-test' },
      choices: [{ index: 0, delta, finish_reason }],
    })
    const asked = calls.flatMap(({ id, name, input }, index) => {
      const written = JSON.stringify(input)
      const middle = Math.ceil(written.length / 2)
      const more = (piece: string) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
      const first = { index, id, type: 'function', function: { name, arguments: '' } }
      return [chunk({ tool_calls: [first] }), more(written.slice(0, middle)), more(written.slice(middle))]
    })
    const events = [
      chunk({ role: 'assistant', content: '' }),
      ...reasoning.map((reasoning_content) => chunk({ reasoning_content })),
      ...text.map((content) => chunk({ content })),
      ...asked,
      chunk({}, { end: 'stop', tool_use: 'tool_calls', max_tokens: 'length' }[stop]),
    ]
    const counts = {
      ...chunk({}),
      choices: [],
      usage: { prompt_tokens: usage.inputTokens, completion_tokens: usage.outputTokens, total_tokens: 1 },
    }
    // The reply is proved by its reason; the counts and the end come behind it.
    return { events: [...events, counts].map(record).concat('data: [DONE]\n\n'), proof: events.length }
  },
  refusal: (status, message) =>
    JSON.stringify({ error: { message, type: 'some_error', param: null, code: null, status } }),
  toolNames: (body) => (body as Loose).tools.map((tool: Loose) => tool.function.name),
}

/** Chat Completions through the AI SDK's provider for compatible servers. */
export const aiSdkCompatibleWire: HttpWire = {
  ...chat,
  model: (baseURL) =>
    fromAiSdk(createOpenAICompatible({ name: 'local', apiKey, baseURL, includeUsage: true })('gpt-test')),
}

/** Chat Completions through the AI SDK's provider for OpenAI, which shows no thinking on this wire. */
export const aiSdkOpenAiChatWire: HttpWire = {
  ...chat,
  lacks: ['reasoning'],
  model: (baseURL) => fromAiSdk(createOpenAI({ apiKey, baseURL }).chat('gpt-test')),
}
