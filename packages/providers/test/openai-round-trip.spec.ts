import type { Message, Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { answersTo, recordedReply } from './kit/answered.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import { collect, finished, request } from './kit/collect.ts'
import { serve, type Arrival } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { completed, content, counted, created, finish, message, role } from './kit/openai-streams.ts'
import { answerOf, bytesOf, readingOf, readingsIn } from './kit/readings.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'
import type { Reading } from './kit/written/reading.ts'

const goodbye = {
  responses: sseBytes(counted(created(), message(0, 'Done.'), completed())),
  chat: chatBytes([role, content('Done.'), finish('stop')]),
}

/** The history once a reply has been recorded and its calls answered, as the runtime makes it. */
function answered(model: Model, reply: NonNullable<ReturnType<typeof finished>>, turn: number): Message[] {
  const recorded = recordedReply(model, reply, turn * 10)
  const results = answersTo(recorded, (id) => `answer of ${id}`)
  const next: Message = { role: 'user', parts: [{ type: 'text', text: 'Continue.' }] }
  return [recorded, results.length > 0 ? { role: 'tool', results } : next]
}

/** Plays the streams as one conversation, and answers each request that was made on the way. */
async function conversation(api: 'responses' | 'chat', readings: readonly Reading[]) {
  const server = await serve(...readings.map((reading) => answerOf(reading)), { pieces: [goodbye[api]] })
  const make = api === 'responses' ? openai : openaiChat
  const model = make('gpt-test', { apiKey: 'k', baseURL: server.url })
  let messages: Message[] = [...request.messages]
  for (const turn of [...readings.keys(), readings.length]) {
    const { signals } = await collect(model, { ...request, messages })
    messages = [...messages, ...answered(model, finished(signals)!, turn + 1)]
  }
  return server.arrivals.map(({ body }: Arrival): Loose => body)
}

describe('a conversation that continues', () => {
  it.each(readingsIn('openai-responses').filter(({ stop }) => stop))(
    'after openai-responses/$file sends what the vendor takes, with every call answered',
    async (reading) => {
      const [, second] = await conversation('responses', [reading])
      expect(brokenResponsesRules(second)).toEqual([])
      const answers = second.input.filter((item: Loose) => /_output$|_response$/.test(item.type ?? ''))
      const searched = answers.filter((item: Loose) => item.type !== 'tool_search_output')
      expect(searched.map((item: Loose) => item.call_id ?? item.approval_request_id)).toEqual(
        reading.calls.map(([id]) => id),
      )
    },
  )

  // A call of the first kind has no id of its own, and goes by one of ours.
  const named = ({ stop, calls }: Reading) => stop && calls.every(([id]) => id !== '')
  it.each(readingsIn('openai-chat', 'openai-compatible').filter(named))(
    'after $folder/$file sends what the server takes, with every call answered',
    async (reading) => {
      const [, second] = await conversation('chat', [reading])
      expect(brokenChatRules(second)).toEqual([])
      const answers = second.messages.filter((one: Loose) => one.role === 'tool')
      expect(answers.map((one: Loose) => [one.tool_call_id, one.content])).toEqual(
        reading.calls.map(([id]) => [id, `answer of ${id}`]),
      )
    },
  )

  it('over four turns keeps each reasoning item with its call, byte for byte', async () => {
    const [first, next] = ['reasoning-with-a-summary', 'call-without-input'].map((file) =>
      readingOf('openai-responses', file),
    )
    const requests = await conversation('responses', [first!, next!, first!])
    expect(requests.map((body) => brokenResponsesRules(body))).toEqual(requests.map(() => []))
    const last = requests.at(-1)
    expect(last.input.map((item: Loose) => item.type ?? item.role)).toEqual([
      'user',
      ...['reasoning', 'function_call', 'function_call_output'],
      ...['function_call', 'function_call_output'],
      // The service gave one id to two calls and items: the second ones go by ids of our own, or none.
      ...['reasoning', 'function_call', 'function_call_output'],
    ])
    const items = itemsOf(first!)
    expect(last.input[1]).toEqual(items[0])
    expect(last.input[2]).toEqual(items[1])
    expect(last).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
  })

  const wholeItems = new Set([
    ...['mcp-call', 'web-search-with-citations', 'code-interpreter', 'phases-of-messages', 'tool-search'],
    ...['mcp-call.sse', 'reasoning-web-search.sse', 'code-interpreter.sse', 'phase-commentary.sse'],
  ])
  it.each(readingsIn('openai-responses').filter(({ file }) => wholeItems.has(file)))(
    'gives back every item of $file as it came',
    async (reading) => {
      const [, second] = await conversation('responses', [reading])
      const sent = second.input.filter(
        (item: Loose) => item.role !== 'user' && !item.type.endsWith('_call_output'),
      )
      expect(sent).toEqual(itemsOf(reading).map(withoutOdds))
    },
  )
})

/** The items of a stream, as they ended. */
function itemsOf(reading: Reading): Loose[] {
  const lines = new TextDecoder().decode(bytesOf(reading)).split('\n')
  return lines
    .filter((line) => line.startsWith('data: {'))
    .map((line): Loose => JSON.parse(line.slice(6)))
    .filter(({ type }) => type === 'response.output_item.done')
    .map(({ item }) => item)
}

/** Token odds are no part of what was said. */
function withoutOdds(item: Loose): Loose {
  if (item.type !== 'message') return item
  const content = item.content.map((one: Loose) => {
    const { logprobs: _, ...part } = one
    return part
  })
  return { ...item, content }
}
