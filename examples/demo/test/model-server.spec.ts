import Anthropic, { AuthenticationError, BadRequestError, NotFoundError } from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { LoopbackServer } from '../src/listen.ts'
import type { Reply } from '../src/model-server/reply.ts'
import { startModelServer } from '../src/model-server/server.ts'

const modelId = 'loopback-test'
let reply: Reply = { text: '', calls: [] }
let server: LoopbackServer
let client: Anthropic

beforeAll(async () => {
  server = await startModelServer({ modelId, player: () => reply })
  client = new Anthropic({ apiKey: 'any', baseURL: server.origin, maxRetries: 0 })
})
afterAll(() => server.close())

const tools: Anthropic.Tool[] = [{ name: 'look', input_schema: { type: 'object' } }]
const asked: Anthropic.MessageCreateParamsStreaming = {
  model: modelId,
  max_tokens: 1000,
  stream: true,
  tools,
  messages: [{ role: 'user', content: 'Look twice.' }],
}

async function records(
  params: Anthropic.MessageCreateParamsStreaming,
): Promise<Anthropic.RawMessageStreamEvent[]> {
  const events: Anthropic.RawMessageStreamEvent[] = []
  for await (const event of await client.messages.create(params)) events.push(event)
  return events
}

/** The kinds of block that a reply to `asked` has under this choice. */
async function startedBlocks(choice: Anthropic.ToolChoice): Promise<string[]> {
  const events = await records({ ...asked, tool_choice: choice })
  return events.flatMap((event) => (event.type === 'content_block_start' ? [event.content_block.type] : []))
}

describe('a reply on the wire', () => {
  it('streams text and parallel calls in the order of the wire', async () => {
    reply = {
      text: 'Let me look. ',
      calls: [
        { name: 'look', input: { at: 'näme', depth: 2 } },
        { name: 'look', input: {} },
      ],
    }
    const events = await records(asked)
    const kinds = events.map((event) => ('index' in event ? `${event.type} ${event.index}` : event.type))
    expect(kinds.filter((kind, place) => kind !== kinds[place - 1])).toEqual([
      'message_start',
      ...[0, 1, 2].flatMap((index) => [
        `content_block_start ${index}`,
        `content_block_delta ${index}`,
        `content_block_stop ${index}`,
      ]),
      'message_delta',
      'message_stop',
    ])
    const deltas = events.flatMap((event) => (event.type === 'content_block_delta' ? [event] : []))
    const text = deltas.map(({ delta }) => (delta.type === 'text_delta' ? delta.text : '')).join('')
    const json = [1, 2].map((index) =>
      deltas
        .filter((event) => event.index === index)
        .map(({ delta }) => (delta.type === 'input_json_delta' ? delta.partial_json : '?')),
    )
    expect(text).toBe('Let me look. ')
    expect(json[0]?.[0]).toBe('')
    expect(json[0]?.length).toBeGreaterThan(2)
    expect(JSON.parse(json[0]?.join('') ?? '')).toEqual({ at: 'näme', depth: 2 })
    expect(json[1]).toEqual([''])
  })

  it('claims the ids, counts the tokens and names the stop reason as the vendor does', async () => {
    reply = { text: 'Done.', calls: [{ name: 'look', input: {} }] }
    const events = await records(asked)
    const [start, last] = [events[0], events.find((event) => event.type === 'message_delta')]
    if (start?.type !== 'message_start' || last === undefined)
      throw new Error('no message_start or no message_delta')
    expect(start.message).toMatchObject({ role: 'assistant', model: modelId, content: [], stop_reason: null })
    expect(start.message.id).toMatch(/^msg_01\w{22}$/)
    expect(start.message.usage.input_tokens).toBeGreaterThan(10)
    expect(last.delta.stop_reason).toBe('tool_use')
    expect(last.usage.input_tokens).toBe(start.message.usage.input_tokens)
    expect(last.usage.output_tokens).toBeGreaterThan(start.message.usage.output_tokens)
    const ids = events.flatMap((event) =>
      event.type === 'content_block_start' && event.content_block.type === 'tool_use'
        ? [event.content_block.id]
        : [],
    )
    expect(ids).toEqual([expect.stringMatching(/^toolu_01\w{22}$/)])
  })

  it('becomes the same message through the accumulating helper of the SDK', async () => {
    reply = { text: 'Let me look.', calls: [{ name: 'look', input: { at: 'a "quoted" place' } }] }
    const { stream: _, ...params } = asked
    const message = await client.messages.stream(params).finalMessage()
    expect(message.content).toMatchObject([
      { type: 'text', text: 'Let me look.' },
      { type: 'tool_use', name: 'look', input: { at: 'a "quoted" place' } },
    ])
  })

  it('is cut at max_tokens, in the middle of its block', async () => {
    reply = {
      text: 'One two three four five six seven eight nine ten.',
      calls: [{ name: 'look', input: {} }],
    }
    const events = await records({ ...asked, max_tokens: 6 })
    const last = events.find((event) => event.type === 'message_delta')
    expect(last).toMatchObject({ delta: { stop_reason: 'max_tokens' }, usage: { output_tokens: 6 } })
    expect(events.filter((event) => event.type === 'content_block_start')).toHaveLength(1)
  })

  it('holds one call where parallel calls are switched off, and none where tools are', async () => {
    reply = {
      text: 'Look.',
      calls: [
        { name: 'look', input: {} },
        { name: 'look', input: {} },
      ],
    }
    expect(await startedBlocks({ type: 'auto', disable_parallel_tool_use: true })).toEqual([
      'text',
      'tool_use',
    ])
    expect(await startedBlocks({ type: 'none' })).toEqual(['text'])
  })
})

const use = (id: string): Anthropic.ToolUseBlockParam => ({ type: 'tool_use', id, name: 'look', input: {} })
const answer = (id: string): Anthropic.ToolResultBlockParam => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'seen',
})
const user = (...content: Anthropic.ContentBlockParam[]): Anthropic.MessageParam => ({
  role: 'user',
  content,
})
const assistant = (...content: Anthropic.ContentBlockParam[]): Anthropic.MessageParam => ({
  role: 'assistant',
  content,
})
const text = (value: string): Anthropic.TextBlockParam => ({ type: 'text', text: value })
const start = user(text('Look.'))

describe('a request that breaks the rules of the wire', () => {
  const invalid: readonly [string, object, RegExp][] = [
    [
      'a call without its result',
      { messages: [start, assistant(use('a'), use('b')), user(answer('a'))] },
      /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: b\./,
    ],
    [
      'a call whose result comes a message too late',
      {
        messages: [
          start,
          assistant(use('a')),
          user(text('Wait.')),
          assistant(text('Yes?')),
          user(answer('a')),
        ],
      },
      /^messages\.1: `tool_use` ids were found without/,
    ],
    [
      'a result without its call',
      { messages: [start, assistant(use('a')), user(answer('a'), answer('b'))] },
      /^messages\.2: unexpected `tool_use_id` found in `tool_result` blocks: b\./,
    ],
    [
      'two results of one call',
      { messages: [start, assistant(use('a')), user(answer('a'), answer('a'))] },
      /single result, found more for a$/,
    ],
    [
      'a result after text',
      { messages: [start, assistant(use('a')), user(text('Here:'), answer('a'))] },
      /`tool_result` blocks must come before/,
    ],
    [
      'an id used twice',
      { messages: [start, assistant(use('a')), user(answer('a')), assistant(use('a')), user(answer('a'))] },
      /`tool_use` ids must be unique/,
    ],
    [
      'an assistant message first',
      { messages: [assistant(text('Hello.')), start] },
      /first message must use the `user`/,
    ],
    [
      'an assistant message last',
      { messages: [start, assistant(text('It is'))] },
      /does not support assistant message prefill/,
    ],
    ['no message', { messages: [] }, /^messages: at least one message/],
    [
      'an empty text',
      { messages: [user(text(''))] },
      /^messages\.0\.content\.0\.text: text content blocks must be non-empty/,
    ],
    ['an empty message', { messages: [{ role: 'user', content: [] }] }, /must have non-empty content/],
    [
      'an id outside the alphabet',
      { messages: [start, assistant(use('a b')), user(answer('a b'))] },
      /content\.0\.id: String should/,
    ],
    [
      'tool blocks without tools',
      { tools: undefined, messages: [start, assistant(use('a')), user(answer('a'))] },
      /must define tools/,
    ],
    ['one tool name twice', { tools: [...tools, ...tools] }, /Tool names must be unique/],
    [
      'a choice of a tool that is not there',
      { tool_choice: { type: 'tool', name: 'leap' } },
      /Tool 'leap' not found/,
    ],
    ['no max_tokens', { max_tokens: undefined }, /^max_tokens: /],
    ['a temperature', { temperature: 1 }, /^temperature: Extra inputs are not permitted$/],
  ]

  it.each(invalid)('is refused with a 400 for %s', async (_, change, message) => {
    reply = { text: 'Never said.', calls: [] }
    const refused: unknown = await client.messages
      .create({ ...asked, ...change })
      .catch((error: unknown) => error)
    if (!(refused instanceof BadRequestError)) throw new Error(`not refused with a 400: ${String(refused)}`)
    expect(refused.type).toBe('invalid_request_error')
    expect(refused.requestID).toMatch(/^req_01\w{22}$/)
    expect(refused.error).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: expect.stringMatching(message) },
      request_id: refused.requestID,
    })
  })

  it('is accepted once the same history has its results in place', async () => {
    reply = { text: 'Seen.', calls: [] }
    const messages = [start, assistant(use('a'), use('b')), user(answer('a'), answer('b'), text('Continue.'))]
    const events = await records({ ...asked, messages })
    expect(events.at(-1)?.type).toBe('message_stop')
  })

  it('is a 404 for another model, a 401 without a key and a 404 on another path', async () => {
    await expect(client.messages.create({ ...asked, model: 'other' })).rejects.toBeInstanceOf(NotFoundError)
    await expect(client.models.list()).rejects.toBeInstanceOf(NotFoundError)
    const keyless = await fetch(`${server.origin}/v1/messages`, { method: 'POST', body: '{}' })
    expect(keyless.status).toBe(401)
    expect(await keyless.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } })
    await expect(
      client.messages.create(
        { ...asked, messages: [] },
        { headers: { authorization: null, 'x-api-key': null } },
      ),
    ).rejects.toBeInstanceOf(AuthenticationError)
  })
})
