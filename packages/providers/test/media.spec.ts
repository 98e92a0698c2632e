import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createRuntime, defineAgent, memoryLedger, type Model } from '@tallystick/core'
import { type UserPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { chatBytes, sseBytes } from './kit/bytes.ts'
import type { Loose } from './kit/loose.ts'
import { serve, type Answer } from './kit/loopback.ts'
import * as lines from './kit/ollama-lines.ts'
import { completed, content, counted, created, finish, message, role } from './kit/openai-streams.ts'
import { done, start, stop, textBlock } from './kit/streams.ts'

const messages: Answer = { pieces: [sseBytes([start(), ...textBlock(0, 'Hi'), done('end_turn'), stop])] }
const responses: Answer = { pieces: [sseBytes(counted(created(), message(0, 'Hi'), completed()))] }
const chat: Answer = { pieces: [chatBytes([role, content('Hi'), finish('stop')])] }
const chatLines: Answer = {
  pieces: [`${JSON.stringify(lines.text('Hi'))}\n${JSON.stringify(lines.done('stop'))}\n`],
}

type Make = (baseURL: string) => Model
const wires = {
  anthropic: [messages, (baseURL) => anthropic('m', { apiKey: 'k', baseURL })],
  openai: [responses, (baseURL) => openai('m', { apiKey: 'k', baseURL })],
  chat: [chat, (baseURL) => openaiChat('m', { apiKey: 'k', baseURL })],
  ollama: [chatLines, (baseURL) => ollama('m', { baseURL })],
  aiSdkChat: [chat, (baseURL) => fromAiSdk(createOpenAI({ apiKey: 'k', baseURL }).chat('gpt-4o'))],
  aiSdkAnthropic: [
    messages,
    (url) => fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })('claude-opus-4-8')),
  ],
} as const satisfies Record<string, readonly [Answer, Make]>

/** The content of the user's message as it goes out, in a run of the real runtime. */
async function sentOf(wire: keyof typeof wires, parts: readonly UserPart[]): Promise<Loose[]> {
  const [answer, make] = wires[wire]
  const server = await serve(answer)
  const agent = defineAgent({ name: 'a', instructions: '', model: make(server.url) })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, [...parts])
  expect(await run.result).toMatchObject({ reason: 'answered', text: 'Hi' })
  const { body } = server.arrivals[0]!
  const { content: sent } = (body['messages'] ?? body['input']).at(-1)
  return Array.isArray(sent) ? sent : [sent]
}

const look: UserPart = { type: 'text', text: 'Look.' }
const keptBy = (provider: string) => ({ providerFile: { provider, id: 'file_1' } })
const image = (more: object): UserPart => ({ type: 'image', mediaType: 'image/png', ...more })
const pdf = (more: object): UserPart => ({
  type: 'file',
  mediaType: 'application/pdf',
  name: 'a.pdf',
  ...more,
})

describe('a file that a provider keeps', () => {
  it('goes to Anthropic by its id', async () => {
    const [, , ...sent] = await sentOf('anthropic', [
      look,
      look,
      image(keptBy('anthropic')),
      pdf(keptBy('anthropic')),
    ])
    expect(sent).toMatchObject([
      { type: 'image', source: { type: 'file', file_id: 'file_1' } },
      { type: 'document', source: { type: 'file', file_id: 'file_1' }, title: 'a.pdf' },
    ])
  })

  it('goes to OpenAI by its id, and an image to a chat in words', async () => {
    const parts = [look, image({ ...keptBy('openai'), detail: 'low' }), pdf(keptBy('openai'))]
    expect((await sentOf('openai', parts)).slice(1)).toEqual([
      { type: 'input_image', file_id: 'file_1', detail: 'low' },
      { type: 'input_file', file_id: 'file_1' },
    ])
    expect((await sentOf('chat', parts)).slice(1)).toEqual([
      { type: 'text', text: expect.stringContaining('kept by openai as file_1, cannot be shown here') },
      { type: 'file', file: { file_id: 'file_1' } },
    ])
  })

  it('goes through the AI SDK by its id', async () => {
    const [, sent] = await sentOf('aiSdkAnthropic', [look, pdf(keptBy('anthropic'))])
    expect(sent).toMatchObject({ type: 'document', source: { type: 'file', file_id: 'file_1' } })
  })

  it.each(Object.keys(wires) as (keyof typeof wires)[])(
    'is described in a sentence to %s, where another provider keeps it',
    async (wire) => {
      const sent = JSON.stringify(
        await sentOf(wire, [look, image(keptBy('elsewhere')), pdf(keptBy('elsewhere'))]),
      )
      expect(sent).toContain('The image of type image/png, kept by elsewhere as file_1, cannot be shown here')
      expect(sent).toContain('The file \\"a.pdf\\" of type application/pdf, kept by elsewhere as file_1')
      expect(sent).not.toContain('file_id')
    },
  )
})

describe('how closely an image is looked at', () => {
  const parts = [look, image({ data: 'iVBORw0KGgo=', detail: 'high' })]

  it('is said where a wire can say it', async () => {
    expect((await sentOf('openai', parts))[1]).toMatchObject({ type: 'input_image', detail: 'high' })
    expect((await sentOf('chat', parts))[1]).toMatchObject({ image_url: { detail: 'high' } })
    expect((await sentOf('aiSdkChat', parts))[1]).toMatchObject({ image_url: { detail: 'high' } })
    expect((await sentOf('chat', [look, image({ data: 'iVBORw0KGgo=' })]))[1].image_url).not.toHaveProperty(
      'detail',
    )
  })

  it('changes nothing for the others', async () => {
    expect((await sentOf('anthropic', parts))[1]).toMatchObject({ type: 'image' })
    expect(await sentOf('ollama', parts)).toEqual(['Look.'])
  })

  it('is one of the words that there are', () => {
    const agent = defineAgent({ name: 'a', instructions: '', model: ollama('m') })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
    expect(() => runtime.run(agent, [image({ url: 'https://example.org/', detail: 'close' })])).toThrow(
      /detail/,
    )
  })
})

describe('a sound', () => {
  const sound = (mediaType: string): UserPart => ({ type: 'file', mediaType, name: 'a', data: 'UklGRg==' })

  it.each([
    ['audio/wav', 'wav'],
    ['audio/x-wav', 'wav'],
    ['audio/mpeg', 'mp3'],
    ['AUDIO/MP3; rate=8000', 'mp3'],
  ])('of type %s goes to a chat as %s', async (mediaType, format) => {
    const expected = { type: 'input_audio', input_audio: { data: 'UklGRg==', format } }
    expect((await sentOf('chat', [look, sound(mediaType)]))[1]).toEqual(expected)
  })

  it('goes through the AI SDK to a chat', async () => {
    expect((await sentOf('aiSdkChat', [look, sound('audio/wav')]))[1]).toMatchObject({
      type: 'input_audio',
      input_audio: { format: 'wav' },
    })
  })

  it.each(['anthropic', 'openai', 'ollama', 'aiSdkAnthropic'] as const)(
    'is described in a sentence to %s, which takes none',
    async (wire) => {
      const sent = JSON.stringify(await sentOf(wire, [look, sound('audio/wav')]))
      expect(sent).toContain('The file \\"a\\" of type audio/wav, cannot be shown here')
    },
  )

  it('of a kind that the vendor does not take gets a warning too', async () => {
    const sent = JSON.stringify(await sentOf('chat', [look, sound('audio/ogg')]))
    expect(sent).toContain('of type audio/ogg, cannot be shown here')
  })
})
