// Runs that continue where OpenAI keeps their past: by the id of a response or of a conversation, over the real SDK.
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type Ledger,
  type RunOptions,
  type RuntimeEvent,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { checkLaws, scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { openai, type OpenAIOptions } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { type Answer, type Loopback, serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { completed, counted, created, functionCall, message } from './kit/openai-streams.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const reply = (id: string, ...items: object[][]): Answer => ({
  pieces: [sseBytes(counted(created({ id }), ...items, completed({ id })))],
})
const says = (id: string, text: string): Answer => reply(id, message(0, text))
const looks = (id: string): Answer => reply(id, functionCall(0, 'call_1', 'look', '{}'))
const lost: Answer = {
  status: 404,
  headers: { 'content-type': 'application/json' },
  pieces: [
    JSON.stringify({
      error: {
        message: "Previous response with id 'resp_9' not found.",
        type: 'invalid_request_error',
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      },
    }),
  ],
}

/** A process of its own: it shares nothing with another one but the ledger and the service. */
function process(server: Loopback, options: OpenAIOptions = {}, ledger: Ledger = memoryLedger()) {
  const look = testTool({ name: 'look', check: () => ({ kind: 'ask' }), run: () => 'sunny' })
  const model = openai('gpt-test', { apiKey: 'k', baseURL: server.url, ...options })
  const agent: Agent = defineAgent({ name: 'guide', instructions: 'Help.', model, tools: [look] })
  return { ledger, agent, runtime: createRuntime({ ledger, agents: [agent] }) }
}

const bodyOf = (server: Loopback, place: number): Loose => server.arrivals[place]?.body

async function eventsOf(ledger: Ledger, runId: RuntimeEvent['runId']): Promise<readonly RuntimeEvent[]> {
  const events = await Array.fromAsync(ledger.read(runId))
  auditAll(events)
  expect(checkLaws(events)).toEqual([])
  return events
}

describe('a run after a response that the provider keeps', () => {
  it('sends what is new, turn by turn, and says where the next run continues', async () => {
    const server = await serve(
      says('resp_1', 'Hello.'),
      looks('resp_2'),
      says('resp_3', 'Sunny.'),
      says('resp_4', 'Bye.'),
    )
    const { runtime, agent, ledger } = process(server, { chain: true })
    const first = await runtime.run(agent, 'I am in Seoul.').result
    expect(first.providerState).toEqual({ previousResponseId: 'resp_1' })

    const second = runtime.run(agent, 'How is the weather?', { ...first.providerState })
    const waits = await second.result
    await second.approve(waits.pendingApprovals[0]!, { by: 'ada' })
    const done = await second.result
    expect(done).toMatchObject({ text: 'Sunny.', providerState: { previousResponseId: 'resp_3' } })
    expect(bodyOf(server, 1)).toMatchObject({ store: true, previous_response_id: 'resp_1' })
    expect(bodyOf(server, 1).input).toMatchObject([{ role: 'user' }])
    expect(bodyOf(server, 2)).toMatchObject({ store: true, previous_response_id: 'resp_2' })
    expect(bodyOf(server, 2).input).toMatchObject([{ type: 'function_call_output', call_id: 'call_1' }])
    expect(brokenResponsesRules(bodyOf(server, 1))).toEqual([])

    const [started] = await eventsOf(ledger, second.id)
    expect(started).toMatchObject({ providerState: { previousResponseId: 'resp_1' } })
    const third = await runtime.run(agent, 'Bye.', { ...done.providerState }).result
    expect(third.text).toBe('Bye.')
    expect(bodyOf(server, 3)).toMatchObject({ previous_response_id: 'resp_3' })
  })

  it('is continued by another process, whose model is set to keep nothing', async () => {
    const server = await serve(looks('resp_2'), says('resp_3', 'Sunny.'))
    const { runtime, agent, ledger } = process(server)
    const run = runtime.run(agent, 'How is the weather?', { previousResponseId: 'resp_1' })
    const [question] = (await run.result).pendingApprovals
    await runtime.idle()
    const other = process(server, {}, ledger)
    const resumed = other.runtime.resume(run.id)
    await resumed.approve(question!, { by: 'ada' })
    expect((await resumed.result).providerState).toEqual({ previousResponseId: 'resp_3' })
    expect(bodyOf(server, 1)).toMatchObject({ store: true, previous_response_id: 'resp_2' })
    await eventsOf(ledger, run.id)
  })

  it('fails where the provider does not have it: no request goes without the past', async () => {
    const server = await serve(lost)
    const { runtime, agent } = process(server)
    const result = await runtime.run(agent, 'Go on.', { previousResponseId: 'resp_9' }).result
    expect(result).toMatchObject({ reason: 'model_failed', failure: { class: 'not_found' } })
    expect(server.arrivals).toHaveLength(1)
    expect(result).not.toHaveProperty('providerState')
  })

  it('sends all that was said since, where the provider has lost a response of the run itself', async () => {
    const server = await serve(looks('resp_2'), lost, says('resp_3', 'Sunny.'))
    const { runtime, agent } = process(server)
    const run = runtime.run(agent, 'How is the weather?', { previousResponseId: 'resp_1' })
    await run.approve((await run.result).pendingApprovals[0]!, { by: 'ada' })
    expect((await run.result).text).toBe('Sunny.')
    expect(bodyOf(server, 2)).toMatchObject({ previous_response_id: 'resp_1' })
    expect(bodyOf(server, 2).input).toMatchObject([{ role: 'user' }, { type: 'function_call' }, {}])
  })
})

describe('a run in a conversation that the provider keeps', () => {
  it('sends what is new there, over what its model is set to', async () => {
    const server = await serve(looks('resp_1'), says('resp_2', 'Sunny.'), says('resp_3', 'Bye.'))
    const { runtime, agent, ledger } = process(server, { chain: true })
    const run = runtime.run(agent, 'How is the weather?', { conversationId: 'conv_1' })
    await run.approve((await run.result).pendingApprovals[0]!, { by: 'ada' })
    const result = await run.result
    expect(result.providerState).toEqual({ conversationId: 'conv_1' })
    for (const place of [0, 1]) {
      expect(bodyOf(server, place)).toMatchObject({ store: true, conversation: 'conv_1' })
      expect(bodyOf(server, place)).not.toHaveProperty('previous_response_id')
    }
    expect(bodyOf(server, 1).input).toMatchObject([{ type: 'function_call_output' }])
    await runtime.run(agent, 'Bye.', { ...result.providerState }).result
    expect(bodyOf(server, 2)).toMatchObject({ conversation: 'conv_1', input: [{ role: 'user' }] })
    await eventsOf(ledger, run.id)
  })

  it('is another request than the same one elsewhere', async () => {
    const server = await serve(says('resp_1', 'Hi.'), says('resp_2', 'Hi.'), says('resp_3', 'Hi.'))
    const { runtime, agent, ledger } = process(server)
    const digests = new Set<string>()
    for (const options of [{}, { conversationId: 'conv_1' }, { conversationId: 'conv_2' }]) {
      const { runId } = await runtime.run(agent, 'Hello.', options).result
      for (const event of await eventsOf(ledger, runId))
        if (event.type === 'model_call_started') digests.add(event.requestDigest)
    }
    expect(digests.size).toBe(3)
  })

  it('says nothing of a provider that keeps nothing', async () => {
    const server = await serve(says('resp_1', 'Hi.'))
    const { runtime, agent } = process(server)
    expect(await runtime.run(agent, 'Hello.').result).not.toHaveProperty('providerState')
  })
})

describe('options that cannot work', () => {
  const both = { previousResponseId: 'resp_1', conversationId: 'conv_1' }
  it.each<readonly [string, RunOptions, RegExp]>([
    ['both of them', both, /a previousResponseId together with a conversationId/],
    ['a session', { sessionId: 's', conversationId: 'c' }, /given sessionId together with conversationId/],
    ['an empty id', { conversationId: ' ' }, /conversationId is a text; expected a text that is not empty/],
  ])('are refused: %s', async (_what, options, error) => {
    const { runtime, agent } = process(await serve(says('resp_1', 'Hi.')))
    expect(() => runtime.run(agent, 'Go.', options)).toThrow(error)
  })

  it('are refused where a branch has its past from another run', async () => {
    const { runtime, agent } = process(await serve(says('resp_1', 'Hi.')))
    const { runId } = await runtime.run(agent, 'Hello.').result
    expect(() => runtime.run(agent, 'Go.', { from: { runId }, previousResponseId: 'resp_1' })).toThrow(
      /given from together with previousResponseId/,
    )
  })

  it('are refused for models that would answer without the past, fallbacks and agents that take over too', async () => {
    const server = await serve(says('resp_1', 'Hi.'))
    const { runtime, agent } = process(server)
    const script = scriptedModel([])
    const options = { conversationId: 'conv_1' }
    const part = (name: string, more: object): Agent =>
      defineAgent({ name, description: name, instructions: 'Help.', model: agent.model, ...more })
    const stateless = part('script', { model: script })
    for (const each of [
      stateless,
      part('falls', { fallbacks: [script] }),
      part('hands', { handoffs: [stateless] }),
    ]) {
      expect(() => runtime.run(each, 'Go.', options)).toThrow(
        /the model scripted-1 of the agent \w+ \(scripted script\) cannot continue/,
      )
    }
    expect(() => runtime.run(agent, 'Go.', { ...options, model: script })).toThrow(/cannot continue/)
    expect((await runtime.run(stateless, 'Go.', { ...options, model: agent.model }).result).text).toBe('Hi.')
  })
})
