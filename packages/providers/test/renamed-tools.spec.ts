import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { createRuntime, defineAgent, memoryLedger, type Model, type ModelRequest } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { createToolNames } from '../src/shared/request.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import { collect, request } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import * as lines from './kit/ollama-lines.ts'
import { completed, content, counted, created, finish, message, role } from './kit/openai-streams.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

const long = 'a'.repeat(100)
const tools = ['天気', 'files/read', 'get_weather', long].map((name) => ({
  ...{ name, description: '', inputSchema: { type: 'object' } },
}))
const asked: ModelRequest = { ...request, tools }
const sse = { pieces: [sseBytes([start(), ...textBlock(0, 'Hi'), done('end_turn'), stop])] }
const responses = { pieces: [sseBytes(counted(created(), message(0, 'Hi'), completed()))] }
const chat = { pieces: [chatBytes([role, content('Hi'), finish('stop')])] }
const chatLines = { pieces: [`${JSON.stringify(lines.text('Hi'))}\n${JSON.stringify(lines.done('stop'))}\n`] }
const nameOf = (tool: Loose): string => tool.name ?? tool.function.name

const cases: readonly (readonly [string, Answer, (url: string) => Model, kept: readonly string[]])[] = [
  ['Anthropic', sse, (baseURL) => anthropic('m', { apiKey: 'k', baseURL }), ['get_weather', long]],
  ['OpenAI', responses, (baseURL) => openai('m', { apiKey: 'k', baseURL }), ['get_weather']],
  ['a chat', chat, (baseURL) => openaiChat('m', { apiKey: 'k', baseURL }), ['get_weather']],
  [
    'a chat of Ollama',
    chat,
    (baseURL) => openaiChat('m', { apiKey: 'k', baseURL, server: 'ollama' }),
    ['天気', 'files/read', 'get_weather'],
  ],
  ['Ollama', chatLines, (baseURL) => ollama('m', { baseURL }), ['天気', 'files/read', 'get_weather']],
  [
    'Anthropic by the AI SDK',
    sse,
    (url) => fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })('m')),
    ['get_weather', long],
  ],
  [
    'Google by name',
    chat,
    (baseURL) => fromAiSdk(createOpenAICompatible({ name: 'google', apiKey: 'k', baseURL })('m')),
    ['get_weather', long],
  ],
]

describe('names of tools', () => {
  it.each(cases)(
    'that %s takes stay, and a recorded warning names each other one',
    async (_, answer, make, kept) => {
      const server = await serve(answer)
      const { signals, failure } = await collect(make(server.url), asked)
      expect(failure).toBeUndefined()
      const sent: readonly string[] = server.arrivals[0]!.body['tools'].map(nameOf)
      expect(sent).toHaveLength(tools.length)
      tools.forEach(({ name }, place) => expect(sent[place] === name).toBe(kept.includes(name)))
      const started = signals.find((signal) => signal.type === 'model_started')
      const renamed = tools.flatMap(({ name }, place) =>
        kept.includes(name) ? [] : [[name, sent[place]!] as const],
      )
      const reported =
        started?.warnings?.filter((warning) => warning.includes('is offered to the model')) ?? []
      expect(reported).toHaveLength(renamed.length)
      renamed.forEach(([name, wireName], place) => {
        expect(reported[place]).toContain(`${JSON.stringify(name)} is offered to the model as ${wireName}`)
      })
    },
  )

  it('are in the ledger with their warning, once a call', async () => {
    const server = await serve(responses)
    const received: string[] = []
    const onWarning = ({ what }: { what: string }) => void received.push(what)
    const model = openai('m', { apiKey: 'k', baseURL: server.url, onWarning })
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [testTool({ name: '天気' })] })
    const ledger = memoryLedger()
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
    const events = await Array.fromAsync(ledger.read(runId))
    expect(events.find(({ type }) => type === 'assistant_started')).toMatchObject({
      warnings: [expect.stringContaining('天気')],
    })
    expect(received).toEqual(['tool_name'])
  })

  it('that a wire wants to begin with a letter do, whatever they were', () => {
    const rules = { maxLength: 20, pattern: /^[a-z_][a-z0-9_.]*$/ }
    const names = ['9 lives', '9lives', 'a.b', '', '天'.repeat(40), '_a b']
    const { toWire, fromWire } = createToolNames(names, rules)
    for (const name of names) {
      expect(toWire(name)).toMatch(rules.pattern)
      expect(toWire(name).length).toBeLessThanOrEqual(20)
      expect(fromWire(toWire(name))).toBe(name)
    }
    expect(toWire('a.b')).toBe('a.b')
  })
})
