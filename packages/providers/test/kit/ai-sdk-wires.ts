import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { fromAiSdk } from '../../src/ai-sdk.ts'
import type { HttpWire } from '@tallystick/testkit/contract'
import { sseRecord } from './bytes.ts'
import { anthropicWire } from './contract-wires.ts'
import { brokenRules } from './history-rules.ts'
import type { Loose } from './loose.ts'
import { chatWire, responsesWire } from './openai-contract-wires.ts'

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

/** Chat Completions through the AI SDK's provider for compatible servers. */
export const aiSdkCompatibleWire: HttpWire = {
  ...chatWire,
  secret: apiKey,
  model: (baseURL) =>
    fromAiSdk(createOpenAICompatible({ name: 'local', apiKey, baseURL, includeUsage: true })('gpt-test')),
}

/** Chat Completions through the AI SDK's provider for OpenAI, which shows no thinking on this wire. */
export const aiSdkOpenAiChatWire: HttpWire = {
  ...chatWire,
  secret: apiKey,
  lacks: ['reasoning'],
  model: (baseURL) => fromAiSdk(createOpenAI({ apiKey, baseURL }).chat('gpt-test')),
}

/**
 * OpenAI's Responses through the AI SDK's provider for OpenAI, which by default leaves the history at the vendor and sends
 * references. Its rules are another request's: the checker of the kit knows no instructions among the messages.
 */
export const aiSdkResponsesWire: HttpWire = {
  ...responsesWire,
  brokenRules: () => [],
  secret: apiKey,
  model: (baseURL) =>
    fromAiSdk(createOpenAI({ apiKey, baseURL })('gpt-test'), {
      providerOptions: { openai: { store: false } },
    }),
  reply: (reply) => ({ events: responsesWire.reply(reply).events.map(withAllFields) }),
}

const itemPrefix: Readonly<Record<string, string>> = { output_text: 'msg', reasoning_summary_text: 'rs' }

/** The provider takes no event with a field missing, as short hand-written ones have. */
function withAllFields(record: string): string {
  const event: Loose = JSON.parse(record.slice(record.indexOf('data:') + 5))
  if (event.response) event.response.created_at = 1
  const kind = /^response\.(\w+)\.delta$/.exec(event.type)?.[1]
  if (kind !== undefined) event.item_id = `${itemPrefix[kind] ?? 'fc'}_${event.output_index}`
  return sseRecord(event)
}
