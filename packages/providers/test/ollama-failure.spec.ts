import { describe, expect, it } from 'vitest'
import { toStreamFailure } from '../src/ollama/client.ts'
import { ollama } from '../src/ollama.ts'
import { collect } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { forbidConsole } from './kit/quiet.ts'

// The client writes what it does not understand to the console.
forbidConsole()

async function refused(status: number, body: string, headers: Record<string, string> = {}) {
  const type = { 'content-type': 'application/json; charset=utf-8' }
  const server = await serve({ status, pieces: [body], headers: { ...type, ...headers } })
  const outcome = await collect(ollama('qwen-test', { baseURL: server.url }))
  expect(outcome.signals).toEqual([])
  expect(server.arrivals).toHaveLength(1)
  return outcome.failure!
}

const nested = JSON.stringify({
  error: {
    code: 400,
    message: 'request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it',
    type: 'exceed_context_size_error',
    n_prompt_tokens: 8889,
  },
})

describe('a refusal over HTTP', () => {
  it.each([
    [400, 'the model llama2:latest does not support tools', 'invalid_request', false],
    [400, '"llama3" does not support thinking', 'invalid_request', false],
    [400, nested, 'context_overflow', false],
    [
      400,
      'the prompt is longer than the context length currently available to the model',
      'context_overflow',
      false,
    ],
    [500, 'the input length exceeds the context length', 'context_overflow', false],
    [401, 'unauthorized', 'authentication', false],
    [403, 'this model needs a subscription', 'permission', false],
    [404, 'model "context-window-test" not found, try pulling it first', 'not_found', false],
    [429, 'you have reached your usage limit', 'rate_limited', true],
    [500, 'llama runner process has terminated: exit status 2', 'server', true],
    [500, 'model requires more system memory (12.3 GiB) than is available (8.1 GiB)', 'server', false],
    [500, 'timed out waiting for llama runner to start - progress 0.00', 'timeout', true],
    [503, 'server busy, please try again.  maximum pending requests exceeded', 'overloaded', true],
  ])('%i "%s" is %s, retryable: %s', async (status, words, failureClass, retryable) => {
    const failure = await refused(status, JSON.stringify({ error: words }))
    expect(failure).toMatchObject({ class: failureClass, retryable, status, code: 'provider' })
    expect(failure.message).toContain(`Ollama answered ${status}: `)
  })

  it('that wraps the words of the engine tells these', async () => {
    const failure = await refused(400, JSON.stringify({ error: nested }))
    expect(failure.message).toContain(
      'request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it (exceed_context_size_error)',
    )
  })

  it('says how long to wait, and the id of the request', async () => {
    const headers = { 'retry-after': '7', 'x-request-id': 'req_1' }
    expect(await refused(429, '{"error": "slow down"}', headers)).toMatchObject({
      ...{ retryAfterMs: 7000, requestId: 'req_1' },
    })
  })

  it('that breaks off in its words is known by its status', async () => {
    const server = await serve({ status: 503, pieces: ['{"error": "server b'], ending: 'break' })
    const { failure } = await collect(ollama('qwen-test', { baseURL: server.url }))
    expect(['overloaded', 'network']).toContain(failure?.class)
    expect(failure?.retryable).toBe(true)
  })
})

describe('an error in the stream', () => {
  it.each([
    ['an error was encountered while running the model: CUDA error', 'server', true],
    ['server overloaded, please retry shortly', 'overloaded', true],
    ['the context window is full', 'context_overflow', false],
    [{ message: 'unexpected EOF', type: 'api_error' }, 'server', true],
    [{ error: { message: 'unexpected EOF' } }, 'server', true],
    ['', 'server', true],
    [null, 'server', true],
    [7, 'server', true],
  ])('%j is %s, retryable: %s', (error, failureClass, retryable) => {
    expect(toStreamFailure(error)).toMatchObject({ class: failureClass, retryable })
  })

  it('about a call that the server could not read shows nothing of the call', () => {
    const failure = toStreamFailure(
      `error parsing tool call: raw='{"pin": 1234', err=unexpected end of JSON input`,
    )
    expect(failure).toMatchObject({ class: 'server', retryable: true })
    expect(failure.message).toContain('error parsing tool call')
    expect(failure.message).not.toContain('1234')
  })
})

describe('a connection that does not come about', () => {
  // Given to no server: one that was free a moment ago may be another's by now.
  const closedPort = 3

  it('because no server runs is a network failure that says so', async () => {
    const { failure } = await collect(ollama('qwen-test', { baseURL: `http://127.0.0.1:${closedPort}` }))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
    expect(failure?.message).toContain('ECONNREFUSED')
    expect(failure?.message).toContain('Check that Ollama runs')
  })

  it('because the given fetch throws fails the call, not the subscriber', async () => {
    const fetch = () => {
      throw new RangeError('a mistake in the fetch')
    }
    const { failure } = await collect(ollama('qwen-test', { fetch }))
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(failure?.cause).toBeInstanceOf(RangeError)
  })

  it('because the answer has no body is one that was cut', async () => {
    const { failure } = await collect(ollama('qwen-test', { fetch: async () => new Response(null) }))
    expect(failure).toMatchObject({ class: 'truncated' })
  })
})
