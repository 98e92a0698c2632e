import type { Message, ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, type OpenAIOptions, type OpenAIWarning } from '../src/openai.ts'
import { answersTo, recordedReply } from './kit/answered.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { type Answer, serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import {
  completed,
  counted,
  created,
  functionCall,
  incomplete,
  message,
  reasoning,
} from './kit/openai-streams.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const reply = (id: string, ...items: object[][]): Answer => ({
  pieces: [sseBytes(counted(created({ id }), ...items, completed({ id })))],
})
const says = (id: string, text: string) => reply(id, message(0, text))
const refusal = (status: number, code: string | null, words: string): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  pieces: [JSON.stringify({ error: { message: words, type: 'invalid_request_error', param: null, code } })],
})

/** A conversation as a runtime leads it: each reply enters the history, with answers to its calls. */
async function talk(options: OpenAIOptions, ...answers: Answer[]) {
  const server = await serve(...answers)
  const warnings: OpenAIWarning[] = []
  const model = openai('gpt-test', {
    ...{ apiKey: 'k', baseURL: server.url, onWarning: (warning) => warnings.push(warning) },
    ...options,
  })
  const history: Message[] = []
  const ask = async (...messages: Message[]) => {
    history.push(...messages)
    const { signals, failure } = await collect(model, { ...request, messages: [...history] })
    const whole = finished(signals)
    if (!whole) return { failure, text: textShown(signals) }
    const recorded = recordedReply(model, whole, history.length * 10)
    const results = answersTo(recorded, () => 'sunny')
    history.push(recorded)
    if (results.length > 0) history.push({ role: 'tool', results })
    return { failure, text: textShown(signals) }
  }
  const body = (place: number): Loose => server.arrivals[place]?.body
  return { ask, body, history, warnings, server, model }
}

const chain = { chain: true }
const conversation = { conversation: 'conv_1' }

describe('without state at the service', () => {
  it('nothing is stored there, and everything is sent every time', async () => {
    const { ask, body } = await talk({}, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
    await ask(user('One'))
    await ask(user('Two'))
    expect(body(1)).toMatchObject({ store: false })
    expect(body(1).input.map((item: Loose) => item.role)).toEqual(['user', 'assistant', 'user'])
    expect(body(1)).not.toHaveProperty('previous_response_id')
  })
})

describe('chained responses', () => {
  it('are stored, and the next request carries only what is new', async () => {
    const { ask, body, model } = await talk(
      chain,
      reply('resp_1', reasoning(0, 'ZW5j'), functionCall(1, 'call_1', 'get_weather', '{}')),
      says('resp_2', 'It is sunny.'),
      says('resp_3', 'Bye'),
    )
    await ask(user('Weather?'))
    await ask()
    await ask(user('Thanks'))
    expect(body(0)).toMatchObject({ store: true })
    expect(body(0)).not.toHaveProperty('previous_response_id')
    expect(body(1)).toMatchObject({
      ...{ previous_response_id: 'resp_1', instructions: 'Be brief.' },
      input: [{ type: 'function_call_output', call_id: 'call_1', output: 'sunny' }],
    })
    expect(brokenResponsesRules(body(1), { calls: ['call_1'] })).toEqual([])
    expect(body(2)).toMatchObject({
      ...{ previous_response_id: 'resp_2', input: [{ role: 'user', content: 'Thanks' }] },
    })
    expect(model).toMatchObject({ provider: 'openai', api: 'responses' })
  })

  it('send all that came since, when other models or cut replies come between', async () => {
    const { ask, body, history } = await talk(chain, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
    await ask(user('One'))
    const elsewhere = { provider: 'other', api: 'x', modelId: 'y' }
    const stopReason = 'cancelled' as const
    const text = (words: string) => [{ type: 'text' as const, text: words }]
    history.push(user('Two'), {
      ...{ role: 'assistant', parts: text('Two?'), model: elsewhere, stopReason, partial: true },
    })
    await ask(user('Three'))
    expect(body(1)).toMatchObject({
      previous_response_id: 'resp_1',
      input: [
        { role: 'user', content: 'Two' },
        { role: 'assistant', content: [{ text: 'Two?' }] },
        { role: 'user', content: 'Three' },
      ],
    })
  })

  it.each([
    ['was cut', [counted(created(), message(0, 'Hm'), incomplete('max_output_tokens'))]],
    ['was withheld', [counted(created(), message(0, 'Hm'), incomplete('content_filter'))]],
  ])('are not continued after a reply that %s', async (_, [events]) => {
    const { ask, body } = await talk(chain, { pieces: [sseBytes(events!)] }, says('resp_2', 'Bye'))
    await ask(user('One'))
    await ask(user('Two'))
    expect(body(1)).not.toHaveProperty('previous_response_id')
    expect(body(1).input).toHaveLength(3)
  })

  it.each([
    ['was compacted', (history: Message[]) => history.splice(0, 1, user('(A summary.)'))],
    ['was edited in a fork', (history: Message[]) => (history[0] = user('Eleven'))],
    ['lost its beginning', (history: Message[]) => history.shift()],
  ])('are left behind when the history %s, for the service knows another one', async (_, change) => {
    const { ask, body, history } = await talk(
      chain,
      says('resp_1', 'Hi'),
      says('resp_2', 'Bye'),
      says('resp_3', '…'),
    )
    await ask(user('One'))
    change(history)
    await ask(user('Two'))
    expect(body(1)).not.toHaveProperty('previous_response_id')
    expect(body(1).input).toHaveLength(history.length - 1)
    await ask(user('Three'))
    expect(body(2)).toMatchObject({ previous_response_id: 'resp_2', input: [{ content: 'Three' }] })
  })

  it('continue after a restart, for their state rides in the messages', async () => {
    const { ask, body, history, server } = await talk(chain, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
    await ask(user('One'))
    const restored: Message[] = JSON.parse(JSON.stringify([...history, user('Two')]))
    const again = openai('gpt-test', { apiKey: 'k', baseURL: server.url, chain: true })
    await collect(again, { ...request, messages: restored })
    expect(body(1)).toMatchObject({ previous_response_id: 'resp_1', input: [{ content: 'Two' }] })
  })

  it.each([
    [
      '400 by its code',
      refusal(400, 'previous_response_not_found', "Previous response with id 'resp_1' not found."),
    ],
    ['404 by its words', refusal(404, null, "Previous response with id 'resp_1' not found.")],
  ])(
    'that the service has lost (%s) are made up for with the whole history, in the same call',
    async (_, lost) => {
      const { ask, body, warnings, server } = await talk(
        ...([chain, reply('resp_1', reasoning(0, 'ZW5j'), message(1, 'Hi')), lost] as const),
        ...[says('resp_2', 'Bye'), says('resp_3', '…')],
      )
      await ask(user('One'))
      const { text, failure } = await ask(user('Two'))
      expect([text, failure]).toEqual(['Bye', undefined])
      expect(server.arrivals).toHaveLength(3)
      expect(body(2)).not.toHaveProperty('previous_response_id')
      expect(body(2).input.map((item: Loose) => item.type ?? item.role)).toEqual([
        ...['user', 'reasoning', 'message', 'user'],
      ])
      expect(brokenResponsesRules(body(2))).toEqual([])
      expect(warnings).toEqual([{ what: 'state', message: expect.stringContaining('no longer has') }])
      await ask(user('Three'))
      expect(body(3)).toMatchObject({ previous_response_id: 'resp_2' })
    },
  )

  it('that are lost after the first word fail like any other reply', async () => {
    const error = { type: 'invalid_request_error', code: 'previous_response_not_found', message: 'Gone' }
    const broken = counted(created({ id: 'resp_2' }), { type: 'error', error })
    const { ask, server } = await talk(chain, says('resp_1', 'Hi'), { pieces: [sseBytes(broken)] })
    await ask(user('One'))
    expect((await ask(user('Two'))).failure).toMatchObject({ class: 'not_found', retryable: false })
    expect(server.arrivals).toHaveLength(2)
  })

  it.each([
    ['another reason', refusal(400, 'bad', 'The model is bad'), 'invalid_request'],
    ['too many calls', refusal(429, null, 'Previous response not found, slow down'), 'rate_limited'],
  ])('that are refused for %s fail', async (_, answer, failureClass) => {
    const { ask, server } = await talk(chain, says('resp_1', 'Hi'), answer, says('resp_2', 'Bye'))
    await ask(user('One'))
    const { failure } = await ask(user('Two'))
    expect(failure?.class).toBe(failureClass)
    expect(server.arrivals).toHaveLength(2)
  })

  it('are not continued after a call whose id the service gave before, for it would know another one', async () => {
    const toolCallReply = (id: string) => reply(id, functionCall(0, 'call_1', 'get_weather', '{}'))
    const { ask, body } = await talk(
      chain,
      toolCallReply('resp_1'),
      toolCallReply('resp_2'),
      says('resp_3', 'Sunny.'),
    )
    await ask(user('Weather?'))
    await ask()
    await ask()
    expect(body(1)).toMatchObject({ previous_response_id: 'resp_1' })
    expect(body(2)).toMatchObject({ previous_response_id: 'resp_1' })
    expect(body(2).input.map((item: Loose) => item.type)).toEqual([
      ...['function_call_output', 'function_call', 'function_call_output'],
    ])
    expect(brokenResponsesRules(body(2), { calls: ['call_1'] })).toEqual([])
  })
})

describe('a conversation that the service keeps', () => {
  it('gets everything first, and then only what it has not seen', async () => {
    const { ask, body } = await talk(
      conversation,
      reply('resp_1', functionCall(0, 'call_1', 'get_weather', '{}')),
      says('resp_2', 'It is sunny.'),
    )
    await ask(user('Zero'), user('Weather?'))
    await ask()
    expect(body(0)).toMatchObject({ conversation: 'conv_1', store: true })
    expect(body(0).input).toHaveLength(2)
    expect(body(1)).toMatchObject({
      ...{ conversation: 'conv_1', input: [{ type: 'function_call_output', call_id: 'call_1' }] },
    })
    expect(body(1)).not.toHaveProperty('previous_response_id')
  })

  it('that no longer holds this history is left alone, and a warning says so', async () => {
    const { ask, body, history, warnings } = await talk(
      conversation,
      says('resp_1', 'Hi'),
      says('resp_2', 'Bye'),
    )
    await ask(user('One'))
    history[0] = user('Eleven')
    await ask(user('Two'))
    expect(body(1)).toMatchObject({ store: false })
    expect(body(1)).not.toHaveProperty('conversation')
    expect(body(1).input).toHaveLength(3)
    expect(warnings).toMatchObject([{ what: 'state', message: expect.stringContaining('conv_1') }])
  })

  it('that is lost is made up for with the whole history', async () => {
    const { ask, body } = await talk(
      ...([
        conversation,
        says('resp_1', 'Hi'),
        refusal(404, null, 'Conversation with id conv_1 not found.'),
      ] as const),
      says('resp_2', 'Bye'),
    )
    await ask(user('One'))
    expect((await ask(user('Two'))).text).toBe('Bye')
    expect(body(2)).toMatchObject({ store: false })
    expect(body(2).input).toHaveLength(3)
  })

  it('is another one than the chain of responses', async () => {
    const { ask, body, history, server } = await talk(chain, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
    await ask(user('One'))
    const model = openai('gpt-test', { apiKey: 'k', baseURL: server.url, ...conversation })
    await collect(model, { ...request, messages: [...history, user('Two')] })
    expect(body(1)).toMatchObject({ conversation: 'conv_1' })
    expect(body(1).input).toHaveLength(3)
  })
})

describe('encrypted reasoning', () => {
  const unknown = refusal(400, null, 'Encrypted content is not supported with this model.')

  it('that the model does not know is asked for once, and then never again', async () => {
    const { ask, body, warnings } = await talk({}, unknown, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
    expect((await ask(user('One'))).text).toBe('Hi')
    await ask(user('Two'))
    expect([0, 1, 2].map((place) => body(place).include)).toEqual([
      ...[['reasoning.encrypted_content'], undefined, undefined],
    ])
    expect(warnings).toMatchObject([{ what: 'reasoning' }])
  })

  it('and lost state, both in one call, are both made up for', async () => {
    const lost = refusal(400, 'previous_response_not_found', 'Previous response not found')
    const { ask, body } = await talk(chain, says('resp_1', 'Hi'), lost, unknown, says('resp_2', 'Bye'))
    await ask(user('One'))
    expect((await ask(user('Two'))).text).toBe('Bye')
    expect(body(3)).not.toHaveProperty('previous_response_id')
    expect(body(3)).not.toHaveProperty('include')
  })
})

it('what the caller insists on, though the service refuses it, fails after one more attempt', async () => {
  const include = ['reasoning.encrypted_content']
  const unknown = refusal(400, null, 'Encrypted content is not supported with this model.')
  const { ask, server } = await talk({ extraBody: { include } }, unknown)
  expect((await ask(user('One'))).failure).toMatchObject({ class: 'invalid_request', retryable: false })
  expect(server.arrivals).toHaveLength(2)
})

it('a request with nothing new after the last reply carries everything', async () => {
  const { ask, body } = await talk(chain, says('resp_1', 'Hi'), says('resp_2', 'Bye'))
  await ask(user('One'))
  await ask()
  const again: ModelRequest['messages'] = body(1).input
  expect(body(1)).not.toHaveProperty('previous_response_id')
  expect(again).toHaveLength(2)
})
