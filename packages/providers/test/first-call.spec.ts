import type { Model } from '@tallystick/core'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { collect, request } from './kit/collect.ts'
import { type Answer, serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { says } from './kit/says.ts'

interface Options {
  readonly baseURL: string
  readonly apiKey?: string
}

const models: readonly (readonly [string, (options: Options) => Model, Answer])[] = [
  ['anthropic', (options) => anthropic('claude-test', options), says.anthropic('Hi')],
  ['openai', (options) => openai('gpt-test', options), says.responses('Hi')],
  ['openaiChat', (options) => openaiChat('gpt-test', options), says.chat('Hi')],
  ['ollama', (options) => ollama('qwen-test', options), says.ollama('Hi')],
]

afterEach(() => vi.unstubAllEnvs())

describe.each(models)('the first call of %s', (_, make, answer) => {
  it('sends nothing where it is given up while the client is loaded; the next call does', async () => {
    const server = await serve(answer, answer)
    const model = make({ baseURL: server.url, apiKey: 'k' })
    model.stream(request, { clock: new ManualClock() }).subscribe().unsubscribe()
    expect(await collect(model)).toMatchObject({ completed: true })
    expect(server.arrivals).toHaveLength(1)
  })

  it('may be two at a time', async () => {
    const server = await serve(answer, answer)
    const model = make({ baseURL: server.url, apiKey: 'k' })
    const outcomes = await Promise.all([collect(model), collect(model)])
    expect(outcomes.map(({ completed }) => completed)).toEqual([true, true])
  })
})

it.each(models.filter(([name]) => name.startsWith('openai')))(
  'a key that is missing at the first call of %s is found at the second',
  async (_, make, answer) => {
    vi.stubEnv('OPENAI_API_KEY', undefined)
    const server = await serve(answer)
    const model = make({ baseURL: server.url })
    expect((await collect(model)).failure).toMatchObject({ class: 'authentication' })
    vi.stubEnv('OPENAI_API_KEY', 'k')
    expect(await collect(model)).toMatchObject({ completed: true })
  },
)
