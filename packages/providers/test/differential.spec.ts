import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { chatReadings } from './kit/chat-readings.ts'
import { callsOf, collect, finished, lastUsage, type Outcome, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { responsesReadings } from './kit/openai-readings.ts'
import { historyBehind } from './kit/owned-reply.ts'
import { recordings } from './kit/readings.ts'
import { missing, recordedBytes } from './kit/recorded.ts'
import type { Loose } from './kit/loose.ts'

/** What both sides have to agree about. */
function seen({ signals, failure }: Outcome): Loose {
  const reply = finished(signals)
  const usage = lastUsage(signals)
  return {
    text: textShown(signals),
    reasoning: signals.map((signal) => (signal.type === 'model_reasoning' ? signal.text : '')).join(''),
    calls: callsOf(signals).map((call) => [call.providerCallId, call.name, call.input]),
    // The AI SDK takes what a wire does not say for zero.
    usage: usage && Object.fromEntries(Object.entries(usage).filter(([, count]) => count > 0)),
    stop: reply?.stopReason,
    id: reply?.providerMessageId,
    failure: failure && [failure.class, failure.retryable],
  }
}

interface Pair {
  readonly files: readonly string[]
  readonly ours: (baseURL: string) => Model
  readonly theirs: (baseURL: string) => Model
}

const apiKey = 'k'
const filesIn = (folder: string) =>
  [...responsesReadings, ...chatReadings].filter((one) => one.folder === folder).map(({ file }) => file)

const pairs: { readonly [folder: string]: Pair } = {
  anthropic: {
    files: recordings.map(({ file }) => file),
    ours: (baseURL) => anthropic('claude-test-1', { apiKey, baseURL }),
    theirs: (baseURL) => fromAiSdk(createAnthropic({ apiKey, baseURL: `${baseURL}/v1` })('claude-test-1')),
  },
  'openai-responses': {
    files: filesIn('openai-responses'),
    ours: (baseURL) => openai('gpt-test', { apiKey, baseURL }),
    theirs: (baseURL) => fromAiSdk(createOpenAI({ apiKey, baseURL })('gpt-test')),
  },
  'openai-chat': {
    files: filesIn('openai-chat'),
    ours: (baseURL) => openaiChat('gpt-test', { apiKey, baseURL }),
    theirs: (baseURL) => fromAiSdk(createOpenAI({ apiKey, baseURL }).chat('gpt-test')),
  },
  'openai-compatible': {
    files: filesIn('openai-compatible'),
    ours: (baseURL) => openaiChat('gpt-test', { apiKey, baseURL }),
    theirs: (baseURL) =>
      fromAiSdk(createOpenAICompatible({ name: 'local', apiKey, baseURL, includeUsage: true })('gpt-test')),
  },
}

/** What the AI SDK's own providers make of a recording otherwise, and why both are as they are meant to be. */
const differences: { readonly [file: string]: { readonly because: string; readonly theirs: Loose } } = {
  'anthropic/compaction-beta.sse': {
    because:
      'The AI SDK shows the summary of a compaction as text. Here a compaction is a part of the vendor’s own.',
    theirs: { text: expect.stringMatching(/^The user provided a very long context[^]*Hello! 👋$/) },
  },
  'anthropic/cut-without-message-stop.sse': {
    because: 'The AI SDK tells of tokens at the end of a reply only, and this one has none.',
    theirs: { usage: {} },
  },
  'anthropic/error-overloaded-mid-stream.sse': {
    because: 'As above: behind an error in the stream nothing is counted.',
    theirs: { usage: undefined },
  },
  'anthropic/gateway-spliced-message-start.jsonl': {
    because: 'As above.',
    theirs: { usage: undefined },
  },
  'openai-responses/reasoning-web-search.sse': {
    because: 'The AI SDK does not count the searches of this wire.',
    theirs: { usage: { inputTokens: 9463, outputTokens: 582, cacheReadTokens: 8320, reasoningTokens: 512 } },
  },
  'openai-responses/custom-tool.jsonl': {
    because:
      'A custom tool is asked with text. Here it is the field `input` of an object; the AI SDK hands on a JSON text, which is no object, so that the call is malformed.',
    theirs: { calls: [['call_custom_sql_001', 'write_sql', {}]] },
  },
  'openai-responses/lmstudio-tool-call.jsonl': {
    because: 'The AI SDK reads summaries of reasoning only, and this server sends its text.',
    theirs: { reasoning: '' },
  },
  'openai-responses/raw-cot-openrouter.sse': { because: 'As above.', theirs: { reasoning: '' } },
  'openai-responses/mcp-approval-request.jsonl': {
    because:
      'A request for an approval is a call to be decided here. Of the AI SDK it is a part of its own, which is kept in the reply.',
    theirs: { calls: [], stop: 'end' },
  },
  'openai-responses/refusal.sse': {
    because: 'The AI SDK has one word for what the model refuses and what a filter withholds.',
    theirs: { stop: 'content_filtered' },
  },
  'openai-chat/refusal.sse': { because: 'As above.', theirs: { stop: 'content_filtered' } },
  'openai-chat/n3-choices.sse': {
    because: 'The AI SDK puts all choices into one text. Here the first one is the reply.',
    theirs: { text: expect.stringMatching(/^\{"\{"\{"citycitycity/) },
  },
}

// The recordings are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`two readings of one recording${missing ? ` (${missing})` : ''}`, () => {
  const all = Object.entries(pairs).flatMap(([folder, { files }]) =>
    files.map((file) => [folder, file] as const),
  )

  it.each(all)(
    '%s/%s: the AI SDK’s provider and ours agree, or the difference is listed',
    async (folder, file) => {
      const server = await serve({ pieces: [recordedBytes(file, folder)] })
      const { ours, theirs } = pairs[folder]!
      const here = seen(await collect(ours(server.url)))
      const listed = differences[`${folder}/${file}`]?.theirs ?? {}
      expect(seen(await collect(theirs(server.url)))).toEqual({ ...here, ...listed })
      // A difference that is gone is taken off the list.
      for (const [field, value] of Object.entries(listed)) expect(here[field]).not.toEqual(value)
    },
  )

  it('is made of every recording, and the list of differences of these', () => {
    expect(all.length).toBeGreaterThanOrEqual(60)
    const names = all.map((one) => one.join('/'))
    expect(Object.keys(differences).filter((name) => !names.includes(name))).toEqual([])
  })
})

// As above.
describe.skipIf(missing)(`the request behind a recorded reply${missing ? ` (${missing})` : ''}`, () => {
  /** The AI SDK leaves the input of a call over MCP out, which streams behind the beginning of its block. */
  const mcp = 'mcp-connector.sse'
  const whole = recordings
    .filter(({ stop }) => stop && stop[0] !== 'max_tokens')
    .filter(({ parts }) => parts.some(([kind]) => kind !== 'stop_details'))
    .map(({ file }) => file)

  it.each(whole)('of %s holds it as it came, through the AI SDK as well', async (file) => {
    const bytes = recordedBytes(file)
    const server = await serve({ pieces: [bytes] })
    const model = pairs['anthropic']!.theirs(server.url)
    const { signals } = await collect(model)
    const messages = historyBehind(model, signals)
    expect((await collect(model, { ...request, messages })).failure).toBeUndefined()
    const sent = server.arrivals[1]!.body['messages'][1]
    const expected = contentOf(bytes).map((block) =>
      file === mcp && block.input ? { ...block, input: {} } : block,
    )
    expect(sent).toEqual({ role: 'assistant', content: expected })
  })
})
