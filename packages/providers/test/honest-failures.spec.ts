import Anthropic from '@anthropic-ai/sdk'
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import OpenAI from 'openai'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { anthropic, type AnthropicOptions } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { chatBytes } from './kit/bytes.ts'
import { collect, finished, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import * as lines from './kit/ollama-lines.ts'
import { content, finish, role } from './kit/openai-streams.ts'

describe('an official client in a browser', () => {
  it.each([
    ['anthropic', () => anthropic('m', { apiKey: 'sk-ant-very-secret' })],
    ['openai', () => openai('m', { apiKey: 'sk-very-secret' })],
    ['openaiChat', () => openaiChat('m', { apiKey: 'sk-very-secret' })],
  ])('refuses to run, and %s says so: it is not the key that lacks', async (_, make) => {
    vi.stubGlobal('window', { document: {} })
    onTestFinished(() => void vi.unstubAllGlobals())
    const { failure } = await collect(make())
    expect(failure).toMatchObject({ class: 'invalid_request', retryable: false })
    expect(failure?.message).toMatch(/browser.*dangerouslyAllowBrowser/)
    expect(failure?.message).not.toMatch(/no usable key|secret/)
  })

  it('that was made to run there is used', async () => {
    vi.stubGlobal('window', { document: {} })
    onTestFinished(() => void vi.unstubAllGlobals())
    const server = await serve({ pieces: [chatBytes([role, content('Hello'), finish('stop')])] })
    const client = new OpenAI({ apiKey: 'k', baseURL: server.url, dangerouslyAllowBrowser: true })
    expect(textShown((await collect(openaiChat('m', { client }))).signals)).toBe('Hello')
  })
})

describe('a reply of Ollama', () => {
  const answer = (...objects: object[]) => ({ pieces: objects.map((line) => `${JSON.stringify(line)}\n`) })
  const generated = { model: 'qwen-test', response: 'Hello', done: false }

  it.each([
    ['of another of its interfaces', [generated, { ...generated, response: '', done: true }]],
    ['of nothing but its end', [{ done: true, done_reason: 'stop', eval_count: 3 }]],
    ['with a message that is not a text', [{ message: 'Hello', done: false }, { done: true }]],
  ])('%s is not an empty success', async (_, objects) => {
    const server = await serve(answer(...objects))
    const { failure, signals } = await collect(ollama('qwen-test', { baseURL: server.url }))
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(finished(signals)).toBeUndefined()
  })

  it('whose last line has no message is whole, and one that says nothing is empty', async () => {
    for (const first of [lines.text('Hello'), lines.text('')]) {
      const server = await serve(answer(first, { done: true, done_reason: 'stop' }))
      const { signals, completed } = await collect(ollama('qwen-test', { baseURL: server.url }))
      expect(completed).toBe(true)
      expect(finished(signals)?.stopReason).toBe('end')
    }
  })
})

describe('a temperature for Anthropic', () => {
  const older = { 'Anthropic-Version': '2023-06-01' }
  const client = (options: object = {}) => new Anthropic({ apiKey: 'k', ...options })
  const temperature = (options: AnthropicOptions) => () =>
    anthropic('claude-test-1', { ...options, extraBody: { temperature: 0 } })

  it.each<[string, AnthropicOptions]>([
    ['in the version that the official client speaks', {}],
    ['nor by a client of one’s own that speaks it', { client: client() }],
    ['nor where a header names that version', { headers: { 'anthropic-version': '2026-10-21' } }],
  ])('is not taken %s', (_, options) => {
    expect(temperature(options)).toThrow(ConfigurationError)
  })

  it.each<[string, AnthropicOptions]>([
    ['a header of the call', { headers: older }],
    ['a header of the client', { client: client({ defaultHeaders: older }) }],
    ['a header of the call, over what the client says', { client: client(), headers: older }],
    ['another cloud', { client: new AnthropicBedrock({ awsRegion: 'eu-west-1' }) }],
  ])('is taken where %s names an older one', async (_, options) => {
    expect(temperature(options)).not.toThrow()
  })

  it('goes out with the older version', async () => {
    const server = await serve({ status: 400, pieces: ['{}'] })
    const options = { apiKey: 'k', baseURL: server.url, headers: older, extraBody: { temperature: 0.5 } }
    await collect(anthropic('claude-test-1', options))
    expect(server.arrivals[0]?.headers['anthropic-version']).toBe('2023-06-01')
    expect(server.arrivals[0]?.body).toMatchObject({ temperature: 0.5 })
  })
})

describe('fetch of one’s own', () => {
  const pieces = [chatBytes([role, content('Hello'), finish('stop')])]

  it('is what openaiChat() and openai() call', async () => {
    const server = await serve({ pieces })
    const urls: string[] = []
    const counting: typeof fetch = (input, init) => {
      urls.push(new Request(input).url)
      return fetch(input, init)
    }
    const options = { apiKey: 'k', baseURL: server.url, fetch: counting }
    expect(textShown((await collect(openaiChat('m', options))).signals)).toBe('Hello')
    await collect(openai('m', options))
    expect(urls.map((url) => new URL(url).pathname)).toEqual(['/chat/completions', '/responses'])
  })
})
