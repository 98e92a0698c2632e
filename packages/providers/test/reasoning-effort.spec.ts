import { createOpenAI } from '@ai-sdk/openai'
import { createRuntime, defineAgent, memoryLedger, type Model } from '@tallystick/core'
import type { ModelSettings } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { finished } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { foldResponse } from './kit/openai-fold.ts'
import {
  added,
  completed,
  counted,
  created,
  delta,
  functionCall,
  itemDone,
  message,
  reasoning,
} from './kit/openai-streams.ts'
import { recordedRun } from './kit/recorded-run.ts'
import { says } from './kit/says.ts'

// How much a model is to reason reaches every wire in its own word, over the option of the adapter.

async function sent(
  modelAt: (url: string) => Model,
  modelSettings: ModelSettings,
  ...answers: readonly Answer[]
): Promise<{ readonly bodies: readonly Loose[]; readonly warnings: readonly string[] }> {
  const server = await serve(...answers)
  const agent = defineAgent({ name: 'thinker', instructions: 'Think.', model: modelAt(server.url) })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger }).run(agent, 'Why?', { modelSettings })
  await run.result
  const events = await Array.fromAsync(ledger.read(run.id))
  const warnings = events.flatMap((event) =>
    event.type === 'assistant_started' ? [...(event.warnings ?? [])] : [],
  )
  return { bodies: server.arrivals.map(({ body }) => body), warnings }
}

type At = (url: string) => Model
const key = { apiKey: 'k' }
const wires: Readonly<Record<string, readonly [At, At, keyof typeof says, (body: Loose) => unknown]>> = {
  Anthropic: [
    (baseURL) => anthropic('m', { ...key, baseURL }),
    (baseURL) => anthropic('m', { ...key, baseURL, effort: 'max' }),
    'anthropic',
    (body) => body['output_config']?.effort,
  ],
  Responses: [
    (baseURL) => openai('m', { ...key, baseURL }),
    (baseURL) => openai('m', { ...key, baseURL, reasoning: { effort: 'max', summary: 'auto' } }),
    'responses',
    (body) => body['reasoning']?.effort,
  ],
  chat: [
    (baseURL) => openaiChat('m', { ...key, baseURL }),
    (baseURL) => openaiChat('m', { ...key, baseURL, reasoningEffort: 'max' }),
    'chat',
    (body) => body['reasoning_effort'],
  ],
  Ollama: [
    (baseURL) => ollama('m', { baseURL }),
    (baseURL) => ollama('m', { baseURL, thinking: true }),
    'ollama',
    (body) => body['think'],
  ],
}

describe.each(Object.entries(wires))('%s', (_name, [at, withOption, wire, effortIn]) => {
  it('gets how much to reason, over its own option; and nothing where nothing is said', async () => {
    const high = await sent(at, { reasoningEffort: 'high' }, says[wire]('Hi'))
    expect(effortIn(high.bodies[0])).toBe('high')
    const over = await sent(withOption, { reasoningEffort: 'low' }, says[wire]('Hi'))
    expect(effortIn(over.bodies[0])).toBe('low')
    const nothing = await sent(at, {}, says[wire]('Hi'))
    expect(effortIn(nothing.bodies[0])).toBeUndefined()
    expect([...high.warnings, ...over.warnings, ...nothing.warnings]).toEqual([])
  })

  it('is held to the output tokens of the run', async () => {
    const { bodies } = await sent(at, { maxOutputTokens: 77 }, says[wire]('Hi'))
    expect(JSON.stringify(bodies[0])).toContain(':77')
  })
})

it('a summary that the option asks for stays beside the effort of the run', async () => {
  const [, withOption] = wires['Responses']!
  const { bodies } = await sent(withOption, { reasoningEffort: 'low' }, says.responses('Hi'))
  expect(bodies[0]?.['reasoning']).toEqual({ effort: 'low', summary: 'auto' })
})

it.each([
  ['Anthropic', 'none'],
  ['Anthropic', 'minimal'],
  ['Ollama', 'minimal'],
  ['Ollama', 'max'],
] as const)('%s has no word for %s: it is left out, on record', async (name, reasoningEffort) => {
  const [at, , wire, effortIn] = wires[name]!
  const { bodies, warnings } = await sent(at, { reasoningEffort }, says[wire]('Hi'))
  expect(effortIn(bodies[0])).toBeUndefined()
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain(`The reasoning effort ${reasoningEffort} was left out`)
})

it('Ollama does not think at the effort none', async () => {
  const { bodies } = await sent(wires['Ollama']![1], { reasoningEffort: 'none' }, says.ollama('Hi'))
  expect(bodies[0]?.['think']).toBe(false)
})

it('the AI SDK gets it in its own call option', async () => {
  const at: At = (baseURL) => fromAiSdk(createOpenAI({ ...key, baseURL }).chat('o3'))
  const { bodies } = await sent(at, { reasoningEffort: 'low' }, says.chat('Hi'))
  expect(bodies[0]?.['reasoning_effort']).toBe('low')
})

const refusal = (field: string): Answer => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  pieces: [
    JSON.stringify({
      error: {
        message: `Unsupported parameter: '${field}' is not supported with this model.`,
        ...{ type: 'invalid_request_error', param: field, code: 'unsupported_parameter' },
      },
    }),
  ],
})

it.each([
  ['Responses', 'reasoning.effort'],
  ['chat', 'reasoning_effort'],
] as const)('a model of %s that reasons not at all is called again without it', async (name, field) => {
  const [at, , wire, effortIn] = wires[name]!
  const { bodies, warnings } = await sent(at, { reasoningEffort: 'low' }, refusal(field), says[wire]('Hi'))
  expect(bodies.map((body) => effortIn(body))).toEqual(['low', undefined])
  expect(warnings).toEqual([`The model takes no ${field}, so it was left out.`])
})

const thought = 'The user asks for the weather, so I look.'
const plainItem = {
  ...{ type: 'reasoning', id: 'think-7', summary: [], status: 'completed' },
  content: [{ type: 'reasoning_text', text: thought }],
}
/** Reasoning in the open, as DeepSeek, vLLM, LM Studio and OpenRouter stream it. */
const plain = (item: object = plainItem) => [
  added(0, { type: 'reasoning', id: 'think-7', summary: [], content: [] }),
  delta('reasoning_text', 0, thought, { content_index: 0 }),
  itemDone(0, { ...item }),
]
const toolCall = functionCall(1, 'call_1', 'get_weather', '{"city":"Seoul"}')
const run = (first: readonly object[]) =>
  recordedRun(
    (baseURL) => openai('deepseek-test', { apiKey: 'k', baseURL, provider: 'deepseek' }),
    [
      { pieces: [sseBytes(counted(created(), first, toolCall, completed()))] },
      { pieces: [sseBytes(counted(created({ id: 'resp_2' }), message(0, 'It rains.'), completed()))] },
    ],
  )

describe('reasoning that a server shows in the open', () => {
  it('goes back as it came, with the call that it led to', async () => {
    const { server, result } = await run(plain())
    expect(result).toMatchObject({ reason: 'answered', text: 'It rains.' })
    expect(server.arrivals[1]!.body['input'].slice(1, 3)).toEqual([
      plainItem,
      {
        ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'get_weather' },
        ...{ arguments: '{"city":"Seoul"}', status: 'completed' },
      },
    ])
  })

  it('goes back as it streamed where the item leaves it out in the end', async () => {
    const { type, id, summary } = plainItem
    const { server } = await run(plain({ type, id, summary, content: [], encrypted_content: null }))
    expect(server.arrivals[1]!.body['input'][1]).toEqual({ type, id, summary, content: plainItem.content })
  })

  it('stays behind where only a summary of it was shown, and so do the ids', async () => {
    const { server } = await run(reasoning(0, undefined, 'I look.'))
    const [, called] = server.arrivals[1]!.body['input']
    expect(called).toMatchObject({ type: 'function_call', call_id: 'call_1' })
    expect(called).not.toHaveProperty('id')
  })

  it('goes back encrypted where it is, whatever streamed', () => {
    const item = { type: 'reasoning', id: 'rs_0', summary: [], encrypted_content: 'ZW5j' }
    const { signals } = foldResponse([created(), ...plain(item), ...message(1, 'Hi'), completed()])
    expect(finished(signals)?.parts[0]).toMatchObject({ text: thought, opaque: { data: { item } } })
    expect(finished(signals)?.parts[0]).not.toHaveProperty('opaque.data.item.content')
  })
})
