import { createRuntime, defineAgent, memoryLedger, type Message, type ModelRequest } from '@tallystick/core'
import type { AssistantMessage, ToolDefinition } from '@tallystick/core/vocabulary'
import { testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicOptions } from '../src/anthropic.ts'
import { hello, object, tool } from './kit/anthropic-sent.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import { type Answer, serve } from './kit/loopback.ts'
import { done, start, stop, toolBlock } from './kit/streams.ts'

const user = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const look = tool('look', object({}))
const find = tool('find', object({ text: { type: 'string' } }))
const removal = (name: string) => ({ type: 'tool_removal', tool: { type: 'tool_reference', name } })
const addition = ({ name, description, inputSchema }: ToolDefinition) => ({
  type: 'tool_addition',
  tool: { type: 'tool_definition', definition: { name, description, input_schema: inputSchema } },
})

/** What one request sends, and the message that its reply becomes. */
async function turn(asked: Partial<ModelRequest>, options: AnthropicOptions = {}) {
  const server = await serve({ pieces: [hello] })
  const model = anthropic('claude-opus-5-5', {
    ...{ apiKey: 'k', baseURL: server.url, promptCache: 'off', midConversationTools: true },
    ...options,
  })
  const { signals } = await collect(model, { ...request, ...asked })
  const { body, headers } = server.arrivals[0]!
  expect(brokenRules(body)).toEqual([])
  const reply: AssistantMessage = {
    role: 'assistant',
    model: { provider: 'anthropic', api: 'messages', modelId: 'claude-opus-5-5' },
    stopReason: 'end',
    partial: false,
    parts: finished(signals)!.parts as AssistantMessage['parts'],
  }
  const messages = body['messages'] as readonly { role: string; content: unknown }[]
  return { body, messages, reply, betas: String(headers['anthropic-beta']) }
}

describe('tools that change in the course of a conversation', () => {
  it('given the option, when a tool comes and another goes, then messages say so at their places', async () => {
    const history: Message[] = [user('One')]
    const first = await turn({ messages: history, tools: [look] })
    history.push(first.reply, user('Two'))
    const second = await turn({ messages: history, tools: [look, find] })
    history.push(second.reply, user('Three'))
    const third = await turn({ messages: history, tools: [find] })
    const roles = (messages: typeof first.messages) => messages.map(({ role }) => role)
    expect(roles(first.messages)).toEqual(['user'])
    expect(roles(second.messages)).toEqual(['user', 'assistant', 'user', 'system'])
    expect(roles(third.messages)).toEqual([...roles(second.messages), 'assistant', 'user', 'system'])
    expect(second.messages.at(-1)?.content).toEqual([addition(find)])
    expect(third.messages.at(-1)?.content).toEqual([removal('look')])
    // No byte before a change is another one.
    expect(third.messages.slice(0, 4)).toEqual(second.messages)
    expect([second, third].map(({ body }) => body['tools'])).toEqual(Array(2).fill(first.body['tools']))
    expect([first, third].map(({ betas }) => betas.includes('inline-tools-2026-09-15'))).toEqual([
      false,
      true,
    ])
  })

  it('given a tool with another schema, when it is offered, then its new definition takes the place of the old', async () => {
    const history: Message[] = [user('One')]
    const first = await turn({ messages: history, tools: [look] })
    const changed = tool('look', object({ at: { type: 'string' } }))
    const second = await turn({ messages: [...history, first.reply, user('Two')], tools: [changed] })
    expect(second.messages.at(-1)?.content).toEqual([addition(changed)])
  })

  it('given the same tools again, when the next request goes out, then its reply keeps nothing', async () => {
    const first = await turn({ messages: [user('One')], tools: [look] })
    const second = await turn({ messages: [user('One'), first.reply, user('Two')], tools: [look] })
    const kinds = [first, second].map(({ reply }) =>
      reply.parts.flatMap((part) => (part.type === 'provider' ? [part.kind] : [])),
    )
    expect(kinds).toEqual([['offered_tools'], []])
    expect(second.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  it('given a reply that paused, when it is to continue with other tools, then these are simply the tools', async () => {
    const first = await turn({ messages: [user('One')], tools: [look] })
    const paused: AssistantMessage = { ...first.reply, stopReason: 'paused' }
    const { body, messages } = await turn({ messages: [user('One'), paused], tools: [find] })
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(body['tools']).toMatchObject([{ name: 'find' }])
  })

  it('given no option, when a tool comes, then it is one of the tools, and no reply keeps any', async () => {
    const given = { midConversationTools: false }
    const first = await turn({ messages: [user('One')], tools: [look] }, given)
    const history = [user('One'), first.reply, user('Two')]
    const { body, messages } = await turn({ messages: history, tools: [look, find] }, given)
    expect(body['tools']).toHaveLength(2)
    expect(messages.some(({ role }) => role === 'system')).toBe(false)
    expect(first.reply.parts.some(({ type }) => type === 'provider')).toBe(false)
  })

  it('given an agent whose tools depend on the turn, when it runs, then the change stands behind the results', async () => {
    const calling: Answer = {
      pieces: [sseBytes([start(), ...toolBlock(0, 'toolu_1', 'look', '{}'), done('tool_use'), stop])],
    }
    const server = await serve(calling, { pieces: [hello] })
    const model = anthropic('claude-opus-5-5', {
      ...{ apiKey: 'k', baseURL: server.url, midConversationTools: true },
    })
    const [one, two] = ['look', 'more'].map((name) => testTool({ name })) as [never, never]
    const agent = defineAgent({
      ...{ name: 'a', instructions: 'Be brief.', model },
      tools: (_, state) => ((state?.turn ?? 0) > 0 ? [one, two] : [one]),
    })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
    expect(await runtime.run(agent, 'Look.').result).toMatchObject({ reason: 'answered' })
    const bodies = server.arrivals.map(({ body }) => body)
    expect(bodies.map((body) => body['tools'])).toEqual(Array(2).fill(bodies[0]!['tools']))
    expect(bodies[1]!['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'user', content: [{ type: 'tool_result' }] },
      { role: 'system', content: [{ type: 'tool_addition', tool: { definition: { name: 'more' } } }] },
    ])
  })
})
