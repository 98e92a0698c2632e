import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it, vi } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { collect, finished, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { forbidUnhandledRejections } from './kit/quiet.ts'
import { answer, call, calls, done, lineBytes, text } from './kit/ollama-lines.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

const hello = [text('Hel'), text('lo'), done()]
const whole = answer([lineBytes(hello)])

describe('a call over HTTP', () => {
  it('sends no key and no more fields than were asked for', async () => {
    const server = await serve(whole)
    await collect(ollama('qwen-test', { baseURL: server.url }))
    expect(server.arrivals[0]?.headers.authorization).toBeUndefined()
    expect(Object.keys(server.arrivals[0]!.body).sort()).toEqual([
      ...['messages', 'model', 'options', 'shift', 'stream', 'truncate'],
    ])
  })

  it('asks the server that the environment names, where no option does', async () => {
    const server = await serve(whole)
    vi.stubEnv('OLLAMA_HOST', server.url.replace('http://', ''))
    const { completed } = await collect(ollama('qwen-test'))
    vi.unstubAllEnvs()
    expect(completed).toBe(true)
    expect(server.arrivals).toHaveLength(1)
  })

  it('goes through the fetch of the caller', async () => {
    const server = await serve(whole)
    const seen: string[] = []
    const model = ollama('qwen-test', {
      baseURL: server.url,
      fetch: (input, init) => {
        seen.push(`${init?.method} ${new Request(input).url}`)
        return fetch(input, init)
      },
    })
    expect(textShown((await collect(model)).signals)).toBe('Hello')
    expect(seen).toEqual([`POST ${server.url}/api/chat`])
  })

  it('takes a text that names a file for what it is, and sends no file', async () => {
    const server = await serve(whole)
    const folder = temporaryFolder()
    // Any path of such letters is base64 as well, if it is long enough.
    const data = join(folder, 'f'.repeat(4 - ((folder.length + 1) % 4)))
    writeFileSync(data, 'secret')
    const parts = [{ type: 'image' as const, mediaType: 'image/png', data }]
    const model = ollama('qwen-test', { baseURL: server.url })
    await collect(model, { ...request, messages: [{ role: 'user', parts }] })
    const sent = JSON.stringify(server.arrivals[0]?.body)
    expect(sent).not.toContain(btoa('secret'))
    expect(sent).toContain('user')
  })
})

describe('options that cannot work', () => {
  it.each([
    ['an empty model id', () => ollama(' ')],
    ['no context', () => ollama('m', { contextTokens: 0 })],
    ['tokens by halves', () => ollama('m', { maxOutputTokens: 0.5 })],
    ['a timeout of nothing', () => ollama('m', { idleTimeoutMs: 0 })],
    ['a timeout that no timer can wait', () => ollama('m', { responseTimeoutMs: 2 ** 31 })],
    ['a text that is not an address', () => ollama('m', { baseURL: 'http://' })],
  ])('are refused at once: %s', (_, make) => {
    expect(make).toThrow(ConfigurationError)
  })

  it.each(['http://me:secret@127.0.0.1:11434', 'me:secret@localhost'])(
    'are refused without telling what is secret in them: %s',
    (baseURL) => {
      expect(() => ollama('m', { baseURL })).toThrow(ConfigurationError)
      expect(() => ollama('m', { baseURL })).not.toThrow(/secret/)
    },
  )
})

describe('an answer', () => {
  it('that answers a cut prompt is a failure, though it has streamed to its end', async () => {
    const server = await serve(
      answer([lineBytes([text('Sure!'), calls(call('f')), done('stop', { prompt_eval_count: 16_384 })])]),
    )
    const { signals, failure } = await collect(ollama('qwen-test', { baseURL: server.url }))
    expect(failure).toMatchObject({ class: 'context_overflow', retryable: false })
    expect(textShown(signals)).toBe('Sure!')
    expect(finished(signals)).toBeUndefined()
  })
})

describe('unsubscribing', () => {
  forbidUnhandledRejections()

  it('between two lines, while the model writes the next, closes the connection', async () => {
    const server = await serve(answer([lineBytes([text('a')]), '{"model": "qwen-te'], { ending: 'stall' }))
    await new Promise<void>((resolve) => {
      const subscription = ollama('qwen-test', { baseURL: server.url })
        .stream(request, { clock: new ManualClock() })
        .subscribe((signal) => {
          if (signal.type !== 'model_text') return
          subscription.unsubscribe()
          resolve()
        })
    })
    await (
      await server.arrival(0)
    ).closed
    expect(server.arrivals).toHaveLength(1)
  })
})
