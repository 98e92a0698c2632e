import Anthropic from '@anthropic-ai/sdk'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicClient } from '../src/anthropic.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'

const hello = [start(), ...textBlock(0, 'Hel', 'lo'), done('end_turn'), stop]

describe('a call over HTTP', () => {
  it('takes a client of the caller, and uses its raw stream only', async () => {
    const seen: { body: Loose; retries: number }[] = []
    const client: AnthropicClient = {
      messages: {
        create: async (body, { maxRetries }) => {
          seen.push({ body, retries: maxRetries })
          return (async function* () {
            yield* hello
          })()
        },
      },
    }
    const { signals } = await collect(anthropic('claude-test-1', { client }))
    expect(textShown(signals)).toBe('Hello')
    expect(seen).toMatchObject([{ body: { model: 'claude-test-1', stream: true }, retries: 0 }])
  })

  it('takes the official client as it is', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const client = new Anthropic({ apiKey: 'k', baseURL: server.url })
    expect(textShown((await collect(anthropic('claude-test-1', { client }))).signals)).toBe('Hello')
  })

  it('that ends without its last blank line has lost the terminal event', async () => {
    const bytes = sseBytes(hello)
    const server = await serve({ pieces: [bytes.subarray(0, bytes.length - 1)] })
    const { failure } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    expect(failure?.class).toBe('truncated')
  })
})

describe('options that cannot work', () => {
  it.each([
    ['an empty model id', () => anthropic(' ')],
    [
      'a client and a key',
      () => anthropic('m', { client: { messages: { create: () => Promise.reject() } }, apiKey: 'k' }),
    ],
    ['a timeout of nothing', () => anthropic('m', { idleTimeoutMs: 0 })],
    ['a timeout that no timer can wait', () => anthropic('m', { responseTimeoutMs: 2 ** 31 })],
    ['tokens by halves', () => anthropic('m', { maxOutputTokens: 0.5 })],
  ])('are refused at once: %s', (_, make) => {
    expect(make).toThrow(ConfigurationError)
  })
})
