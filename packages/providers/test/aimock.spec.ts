import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { LLMock } from '@copilotkit/aimock'
import { createRuntime, defineAgent, memoryLedger, type Model, type RuntimeEvent } from '@tallystick/core'
import { checkLaws, testTool } from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'

const apiKey = 'k'

/** Models on a server that speaks all wires and that is not our code. */
const models: Readonly<Record<string, (url: string) => Model>> = {
  'anthropic()': (url) => anthropic('claude-opus-4-8', { apiKey, baseURL: url }),
  'openai()': (url) => openai('gpt-5.4', { apiKey, baseURL: `${url}/v1` }),
  'openaiChat()': (url) => openaiChat('gpt-5.4', { apiKey, baseURL: `${url}/v1` }),
  'ollama()': (url) => ollama('qwen3', { baseURL: url }),
  'fromAiSdk(anthropic())': (url) =>
    fromAiSdk(createAnthropic({ apiKey, baseURL: `${url}/v1` })('claude-opus-4-8')),
  'fromAiSdk(openai())': (url) => fromAiSdk(createOpenAI({ apiKey, baseURL: `${url}/v1` })('gpt-5.4')),
}

const mock = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent' })
beforeAll(async () => {
  const tokens = (input: number, output: number) => ({
    ...{ prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    ...{ input_tokens: input, output_tokens: output },
  })
  const call = (name: string, given: object) => ({ name, arguments: JSON.stringify(given) })
  mock.on(
    { userMessage: /Weather/, hasToolResult: false },
    {
      toolCalls: [call('get_weather', { city: 'Seoul — 서울' }), call('get_time', {})],
      usage: tokens(100, 20),
    },
  )
  mock.on(
    { userMessage: /Weather/, hasToolResult: true },
    { content: 'Es regnet 🌦️ at noon.', usage: tokens(130, 9) },
  )
  await mock.start()
})
afterAll(() => mock.stop())

async function runOf(model: Model, input: string) {
  const tools = [
    testTool({ name: 'get_weather', run: () => 'rain' }),
    testTool({ name: 'get_time', run: () => 'noon' }),
  ]
  const agent = defineAgent({
    name: 'assistant',
    instructions: 'Be brief.',
    model,
    tools,
    limits: { maxTurns: 3 },
  })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, input)
  const result = await run.result
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(run.id)) events.push(event)
  return { result, events, inputs: tools.map((tool) => tool.runs.map(({ input: given }) => given)) }
}

describe.each(Object.entries(models))('%s against a mock that others wrote', (title, make) => {
  it('calls its tools, gets their results and answers, by all laws', async () => {
    const { result, events, inputs } = await runOf(make(mock.url), 'Weather and time?')
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Es regnet 🌦️ at noon.' })
    expect(inputs).toEqual([[{ city: 'Seoul — 서울' }], [{}]])
    expect(checkLaws(events)).toEqual([])
    // On Ollama's wire the mock counts nothing.
    const counted = title === 'ollama()' ? [0, 0] : [230, 29]
    expect([result.usage.inputTokens, result.usage.outputTokens]).toEqual(counted)
  })
})
