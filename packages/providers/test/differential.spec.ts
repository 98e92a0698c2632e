import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { differences } from './kit/ai-sdk-differences.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { callsOf, collect, finished, lastUsage, type Outcome, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { historyBehind } from './kit/owned-reply.ts'
import { answerOf, bytesOf, modelOver, readingsIn } from './kit/readings.ts'
import { areRecorded } from './kit/recorded/files.ts'
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

const apiKey = 'k'

/** The AI SDK's own provider for each wire; it has none of its own for Ollama. */
const theirModelOver = {
  anthropic: (baseURL: string) =>
    fromAiSdk(createAnthropic({ apiKey, baseURL: `${baseURL}/v1` })('claude-test-1')),
  'openai-responses': (baseURL: string) => fromAiSdk(createOpenAI({ apiKey, baseURL })('gpt-test')),
  'openai-chat': (baseURL: string) => fromAiSdk(createOpenAI({ apiKey, baseURL }).chat('gpt-test')),
  'openai-compatible': (baseURL: string) =>
    fromAiSdk(createOpenAICompatible({ name: 'local', apiKey, baseURL, includeUsage: true })('gpt-test')),
}
type Shared = keyof typeof theirModelOver
const sharedFolders = Object.keys(theirModelOver) as Shared[]

describe('two readings of one stream', () => {
  const all = readingsIn(...sharedFolders)

  it.each(all)(
    '$folder/$file: the AI SDK’s provider and ours agree, or the difference is listed',
    async (reading) => {
      const server = await serve(answerOf(reading))
      const here = seen(await collect(modelOver[reading.folder](server.url)))
      const listed = differences[`${reading.folder}/${reading.file}`]?.theirs ?? {}
      const there = seen(await collect(theirModelOver[reading.folder as Shared](server.url)))
      expect(there).toEqual({ ...here, ...listed })
      // A difference that is gone is taken off the list.
      for (const [field, value] of Object.entries(listed)) expect(here[field]).not.toEqual(value)
    },
  )

  it('is made of every stream, and the list of differences of these', () => {
    const names = new Set(all.map(({ folder, file }) => `${folder}/${file}`))
    expect(names.size).toBeGreaterThanOrEqual(120)
    const gone = Object.keys(differences).filter(
      (name) => !names.has(name) && (areRecorded || !isRecorded(name)),
    )
    expect(gone).toEqual([])
  })
})

/** Recordings are files, and written streams have names. */
const isRecorded = (name: string): boolean => /\.(sse|jsonl)$/.test(name)

describe('the request after a reply', () => {
  /** What the AI SDK does not hand on, or not whole: the last piece of a signature only, no block of a new kind. */
  const notWhole = new Set([
    ...[
      'text-empty',
      'thinking-signature-in-pieces',
      'call-that-cannot-be-read',
      'lines-that-end-in-returns',
    ],
    'events-and-blocks-of-new-kinds',
  ])
  /** The AI SDK leaves the input of a call over MCP out, which streams after the beginning of its block. */
  const overMcp = (file: string) => file.startsWith('mcp-connector')
  const whole = readingsIn('anthropic')
    .filter(({ file, stop }) => stop && stop[0] !== 'max_tokens' && !notWhole.has(file))
    .filter(({ parts }) => parts.some(([kind]) => kind !== 'stop_details'))

  it.each(whole)('of $file holds it as it came, through the AI SDK as well', async (reading) => {
    const bytes = bytesOf(reading)
    const server = await serve(answerOf(reading))
    const model = theirModelOver.anthropic(server.url)
    const { signals } = await collect(model)
    const messages = historyBehind(model, signals)
    expect((await collect(model, { ...request, messages })).failure).toBeUndefined()
    const sent = server.arrivals[1]!.body['messages'][1]
    const expected = contentOf(bytes).map((block) =>
      overMcp(reading.file) && block.input ? { ...block, input: {} } : block,
    )
    expect(sent).toEqual({ role: 'assistant', content: expected })
  })
})
