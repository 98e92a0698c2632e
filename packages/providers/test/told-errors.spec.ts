import type { Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { observeResponse } from '../src/shared/body.ts'
import { chatBytes, dataRecord } from './kit/bytes.ts'
import { collect, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { content, role } from './kit/openai-streams.ts'

const apiKey = 'k'
const makers: Readonly<Record<string, (baseURL: string) => Model>> = {
  anthropic: (baseURL) => anthropic('claude-test-1', { apiKey, baseURL }),
  openai: (baseURL) => openai('gpt-test', { apiKey, baseURL }),
  openaiChat: (baseURL) => openaiChat('gpt-test', { apiKey, baseURL }),
  ollama: (baseURL) => ollama('llama-test', { baseURL }),
}
const failureOf = async (make: (baseURL: string) => Model, answer: Answer) => {
  const { failure, completed, signals } = await collect(make((await serve(answer)).url))
  expect(completed).toBe(false)
  return { failure, shown: textShown(signals) }
}
const json = { 'content-type': 'application/json', 'x-request-id': 'req_1', 'request-id': 'req_1' }

describe('an answer of status 200 that is an error', () => {
  const words = 'Überlastet: try later'
  const error = { type: 'overloaded_error', message: words }
  const bodies = [{ type: 'error', error }, { error: { ...error, code: 503 } }]

  it.each(Object.entries(makers))(
    'given to %s as JSON, then it fails with the words of the server',
    async (_name, make) => {
      for (const body of bodies) {
        for (const headers of [json, {}]) {
          const { failure } = await failureOf(make, { headers, pieces: [JSON.stringify(body)] })
          expect(failure).toMatchObject({ class: 'overloaded', retryable: true })
          expect(failure?.message).toContain(words)
        }
      }
    },
  )

  it('given as a list, or as words alone, then they are read', async () => {
    const make = makers['openaiChat']!
    for (const body of [[{ error }], { detail: words }, { message: words }, { error: words }]) {
      const { failure } = await failureOf(make, { headers: json, pieces: [JSON.stringify(body)] })
      expect(failure?.message).toContain(words)
      expect(failure).toMatchObject({ retryable: true, requestId: 'req_1' })
    }
  })

  it('given a page, then nothing of it is told but its type', async () => {
    const headers = { 'content-type': 'text/html' }
    const { failure } = await failureOf(makers['openaiChat']!, { headers, pieces: ['<html>', 'secret'] })
    expect(failure).toMatchObject({ class: 'protocol', message: expect.stringContaining('text/html') })
    expect(failure?.message).not.toContain('secret')
  })
})

describe('an error in a stream of chats', () => {
  const message = 'the request exceeds the available context size, ü'
  const told = { code: 400, message, type: 'invalid_request_error' }
  const field = `error: ${JSON.stringify(told)}\n\n`

  it('given in a field that no client reads, however it is cut, then it is the failure', async () => {
    const bytes = Buffer.from(`${field}data: [DONE]\n\n`)
    for (const cut of [0, 3, 20, bytes.indexOf('ü') + 1]) {
      const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)].filter(({ length }) => length > 0)
      const { failure } = await failureOf(makers['openaiChat']!, { pieces })
      expect(failure).toMatchObject({ class: 'context_overflow', retryable: false })
      expect(failure?.message).toContain(message)
    }
  })

  it('given there after words, then they are shown and the error is the failure', async () => {
    const words = chatBytes([role, content('Hel')])
    const { failure, shown } = await failureOf(makers['openaiChat']!, { pieces: [words, field] })
    expect([shown, failure?.class]).toEqual(['Hel', 'context_overflow'])
  })

  it.each<readonly [string, object]>([
    ['as a chunk of its own kind', { object: 'error', ...told }],
    ['as words where choices belong', { message }],
    ['as the detail of a framework', { detail: message }],
    ['in the choice', { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: told }] }],
  ])('given %s, then it fails with the words of the server', async (_how, chunk) => {
    const { failure } = await failureOf(makers['openaiChat']!, { pieces: [dataRecord(chunk)] })
    expect(failure?.message).toContain(message)
  })
})

describe('a reply of Ollama that holds nothing', () => {
  it.each(['load', 'unload', undefined])(
    'given the reason %s, then it may be tried again',
    async (done_reason) => {
      const line = { model: 'm', message: { role: 'assistant', content: '' }, done: true, done_reason }
      const { failure } = await failureOf(makers['ollama']!, { pieces: [`${JSON.stringify(line)}\n`] })
      expect(failure).toMatchObject({ class: 'server', retryable: true })
      expect(failure?.message).toContain('before the model wrote anything')
    },
  )
})

/** A response whose body stays open after its pieces. */
function openResponse(...pieces: readonly Uint8Array[]): Response {
  return new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece)
      },
    }),
  )
}

describe('an observed response', () => {
  it('does not say that its body ended where its reader cancels it', async () => {
    let endings = 0
    const pieces: Uint8Array[] = []
    const response = observeResponse(openResponse(new Uint8Array([1])), {
      onBytes: (bytes) => pieces.push(bytes),
      onEnd: () => endings++,
    })
    const reader = response.body?.getReader()
    await reader?.read()
    const next = reader?.read()
    await reader?.cancel('enough')
    expect((await next)?.done).toBe(true)
    expect(pieces).toHaveLength(1)
    expect(endings).toBe(0)
  })

  it('says that its body ended where it did', async () => {
    let endings = 0
    const response = observeResponse(new Response('whole'), { onBytes: () => {}, onEnd: () => endings++ })
    expect(await response.text()).toBe('whole')
    expect(endings).toBe(1)
  })
})
