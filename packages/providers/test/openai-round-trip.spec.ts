import type { Message, Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { answersTo, recordedReply } from './kit/answered.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import { chatReadings } from './kit/chat-readings.ts'
import { collect, finished, request } from './kit/collect.ts'
import { serve, type Arrival } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { type Reading, responsesReadings } from './kit/openai-readings.ts'
import { completed, content, counted, created, finish, message, role } from './kit/openai-streams.ts'
import { missing, recordedBytes } from './kit/recorded.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const goodbye = {
  responses: sseBytes(counted(created(), message(0, 'Done.'), completed())),
  chat: chatBytes([role, content('Done.'), finish('stop')]),
}

/** The history once a reply has been recorded and its calls answered, as the runtime makes it. */
function answered(model: Model, reply: NonNullable<ReturnType<typeof finished>>, turn: number): Message[] {
  const recorded = recordedReply(model, reply, turn * 10)
  const results = answersTo(recorded, (id) => `answer of ${id}`)
  const next: Message = { role: 'user', parts: [{ type: 'text', text: 'Go on.' }] }
  return [recorded, results.length > 0 ? { role: 'tool', results } : next]
}

/** Plays the recordings as one conversation, and answers each request that was made on the way. */
async function conversation(
  api: 'responses' | 'chat',
  readings: readonly Pick<Reading, 'file' | 'folder'>[],
) {
  const answers = readings.map(({ file, folder }) => ({ pieces: [recordedBytes(file, folder)] }))
  const server = await serve(...answers, { pieces: [goodbye[api]] })
  const make = api === 'responses' ? openai : openaiChat
  const model = make('gpt-test', { apiKey: 'k', baseURL: server.url })
  let messages: Message[] = [...request.messages]
  for (const turn of [...readings.keys(), readings.length]) {
    const { signals } = await collect(model, { ...request, messages })
    messages = [...messages, ...answered(model, finished(signals)!, turn + 1)]
  }
  return server.arrivals.map(({ body }: Arrival): Loose => body)
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`a conversation that goes on${missing ? ` (${missing})` : ''}`, () => {
  it.each(responsesReadings.filter(({ stop }) => stop))(
    'behind openai-responses/$file sends what the vendor takes, with every call answered',
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

  it.each(chatReadings.filter(({ stop }) => stop))(
    'behind $folder/$file sends what the server takes, with every call answered',
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
    const recorded = ['encrypted-reasoning-turn1.jsonl', 'encrypted-reasoning-turn2.jsonl'].map((file) => ({
      ...{ folder: 'openai-responses' as const, file },
    }))
    const requests = await conversation('responses', [...recorded, recorded[0]!])
    expect(requests.map((body) => brokenResponsesRules(body))).toEqual(requests.map(() => []))
    const last = requests.at(-1)
    expect(last.input.map((item: Loose) => item.type ?? item.role)).toEqual([
      'user',
      ...['reasoning', 'function_call', 'function_call_output'],
      ...['function_call', 'function_call_output'],
      // The service gave one id to two calls and items: the second ones go by ids of our own, or none.
      ...['reasoning', 'function_call', 'function_call_output'],
    ])
    const items = itemsOf('encrypted-reasoning-turn1.jsonl')
    expect(last.input[1]).toEqual(items[0])
    expect(last.input[2]).toEqual(items[1])
    expect(last).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
  })

  it.each(['mcp-call.sse', 'reasoning-web-search.sse', 'code-interpreter.sse', 'phase-commentary.sse'])(
    'gives back every item of %s as it came',
    async (file) => {
      const [, second] = await conversation('responses', [{ folder: 'openai-responses', file }])
      const sent = second.input.filter(
        (item: Loose) => item.role !== 'user' && !item.type.endsWith('_output'),
      )
      expect(sent).toEqual(itemsOf(file).map(withoutOdds))
    },
  )
})

/** The items of a recording, as they ended. */
function itemsOf(file: string): Loose[] {
  const lines = new TextDecoder().decode(recordedBytes(file, 'openai-responses')).split('\n')
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
