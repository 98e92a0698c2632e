import { describe, expect, it } from 'vitest'
import type { Reply } from '../src/model-server/reply.ts'
import type { MessagesRequest, RequestMessage } from '../src/model-server/wire.ts'
import { stockPlayer } from '../src/stock-player.ts'

type Answer = string | { readonly failed: string }

/** What each tool answers; the calculator is answered by the beginning of its expression. */
interface World {
  readonly sql_query?: Answer
  readonly http_fetch?: Answer
  readonly round?: Answer
  readonly ceil?: Answer
  readonly place_order?: Answer
}

const row = ['TENT-2P', 'Tent', '2026-10', 100, 200_050, 20, 8]
const columns = ['sku', 'name', 'month', 'units', 'revenue_cents', 'on_hand', 'case_size']
const answers = {
  sql_query: JSON.stringify({ columns, rows: [row] }),
  http_fetch: JSON.stringify({ status: 200, body: '{"rates":{"USD":1.25}}' }),
  round: '2500.63',
  ceil: '104',
  place_order: JSON.stringify({ status: 'placed', orderId: 7, sku: 'TENT-2P', quantity: 104 }),
}

function requestOf(messages: readonly RequestMessage[], choice: 'auto' | 'none' = 'auto'): MessagesRequest {
  return {
    model: 'm',
    max_tokens: 1000,
    messages,
    tools: [{ name: 'sql_query' }],
    tool_choice: { type: choice },
  }
}

/** Plays turn after turn in a world until the player asks for nothing that the world answers; gives every reply. */
function play(world: World): {
  readonly replies: readonly Reply[]
  readonly messages: readonly RequestMessage[]
} {
  const messages: RequestMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }]
  const replies: Reply[] = []
  for (;;) {
    const reply = stockPlayer(requestOf(messages))
    replies.push(reply)
    const turn = reply.calls.map(({ name, input }, place) => {
      const key = name === 'calculator' ? String(input['expression']).split('(')[0] : name
      return { id: `t${messages.length}_${place}`, name, input, answer: world[key as keyof World] }
    })
    if (turn.length === 0 || turn.some(({ answer }) => answer === undefined)) return { replies, messages }
    messages.push(
      {
        role: 'assistant',
        content: turn.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
      },
      {
        role: 'user',
        content: turn.map(({ id, answer = '' }) => ({
          type: 'tool_result',
          tool_use_id: id,
          is_error: typeof answer !== 'string',
          content: [{ type: 'text', text: typeof answer === 'string' ? answer : answer.failed }],
        })),
      },
    )
  }
}

function lastReply(world: World): Reply {
  return play(world).replies.at(-1) ?? { text: '', calls: [] }
}

describe('the player of the model', () => {
  it('asks for one thing after the other, and takes every number from a result', () => {
    const { replies } = play(answers)
    expect(replies.map(({ calls }) => calls)).toMatchObject([
      [{ name: 'sql_query' }],
      [{ name: 'http_fetch' }],
      [
        { name: 'calculator', input: { expression: 'round(200050 / 100 * 1.25, 2)' } },
        { name: 'calculator', input: { expression: 'ceil((100 * 1.2 - 20) / 8) * 8' } },
      ],
      [{ name: 'place_order', input: { sku: 'TENT-2P', quantity: 104 } }],
      [],
    ])
    expect(replies.at(-1)?.text).toBe(
      'The best seller of 2026-10 is Tent (TENT-2P): 100 units for 2000.50 EUR. ' +
        'At 1.25 dollars a euro that is 2500.63 USD. Order 7 is placed: 104 of TENT-2P.',
    )
  })

  it('says the same to the same history', () => {
    const { messages } = play(answers)
    expect(stockPlayer(requestOf(messages))).toEqual(stockPlayer(requestOf(structuredClone(messages))))
  })

  it('asks again only for the calculation that is missing', () => {
    const { messages } = play({ ...answers, place_order: undefined } as unknown as World)
    const without = messages.map(({ role, content }) => ({
      role,
      content: content.filter((block) => !JSON.stringify(block).includes('t5_1')),
    }))
    expect(stockPlayer(requestOf(without)).calls).toMatchObject([
      { name: 'calculator', input: { expression: 'ceil((100 * 1.2 - 20) / 8) * 8' } },
    ])
  })

  it.each<[string, World, RegExp]>([
    [
      'the database',
      { sql_query: { failed: 'no such table' } },
      /could not read the sales database.*no such table/,
    ],
    ['a month without sales', { sql_query: JSON.stringify({ columns, rows: [] }) }, /names no best seller/],
    ['the network', { http_fetch: { failed: 'connection refused' } }, /ordered nothing: connection refused/],
    [
      'the rate service',
      { http_fetch: JSON.stringify({ status: 422, body: '{"message":"no rate"}' }) },
      /could not get the exchange rate.*no rate/,
    ],
    ['a calculation', { ceil: { failed: 'At character 3' } }, /ordered nothing: At character 3/],
    [
      'an order that is denied',
      { place_order: { failed: 'ann denied this call: too many' } },
      /was denied, so it is not placed: ann denied this call: too many$/,
    ],
    [
      'an order in doubt',
      { place_order: { failed: 'It may have taken effect.' } },
      /is not confirmed: It may have taken effect\.$/,
    ],
  ])('is honest about %s that fails', (_, world, text) => {
    const reply = lastReply({ ...answers, ...world })
    expect(reply.calls).toEqual([])
    expect(reply.text).toMatch(text)
    expect(reply.text).not.toContain('is placed:')
  })

  it('orders nothing where there is enough', () => {
    expect(lastReply({ ...answers, ceil: '0' })).toMatchObject({
      calls: [],
      text: expect.stringContaining('nothing has to be re-ordered'),
    })
  })

  it('answers a call without tools with what it knows so far', () => {
    const { messages } = play({ sql_query: answers.sql_query })
    const reply = stockPlayer(requestOf(messages, 'none'))
    expect(reply.calls).toEqual([])
    expect(reply.text).toContain('Tent (TENT-2P): 100 units')
    expect(reply.text).toContain('No order was confirmed.')
    expect(stockPlayer(requestOf(play({}).messages, 'none')).text).toContain(
      'I do not know the best seller yet.',
    )
  })
})
