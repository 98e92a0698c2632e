import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { collect } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { openaiWires } from './kit/wires.ts'
import { forbidConsole } from './kit/quiet.ts'

forbidConsole()

const apiKey = 'sk-proj-veryverysecret'
const errorBody = (
  code: string | number | null,
  message: string,
  type: string | null = 'invalid_request_error',
) => JSON.stringify({ error: { message, type, param: null, code } })

async function refused(
  status: number,
  body: string,
  headers: Record<string, string> = {},
  make: typeof openai | typeof openaiChat = openai,
) {
  const json: Answer = {
    status,
    pieces: [body],
    headers: { 'content-type': 'application/json', 'x-request-id': 'req_1', ...headers },
  }
  const server = await serve(json)
  const outcome = await collect(make('gpt-test', { apiKey, baseURL: server.url }))
  expect(outcome.signals).toEqual([])
  // The runtime tries again, not the SDK.
  expect(server.arrivals).toHaveLength(1)
  return outcome.failure!
}

describe('a refusal over HTTP', () => {
  it.each([
    [400, 'invalid_value', 'Invalid value', 'invalid_request', false],
    [400, 'context_length_exceeded', 'Your input exceeds the context window', 'context_overflow', false],
    [400, 'content_filter', 'The response was filtered', 'content_filtered', false],
    [400, 'invalid_prompt', 'Limited access to this content', 'content_filtered', false],
    [401, 'invalid_api_key', 'Incorrect API key provided', 'authentication', false],
    [402, 'payment_required', 'Insufficient Balance', 'permission', false],
    [403, 'unsupported_country_region_territory', 'Country not supported', 'permission', false],
    [404, 'model_not_found', 'The model does not exist', 'not_found', false],
    [409, 'conflict', 'Locked', 'server', true],
    [429, 'rate_limit_exceeded', 'Rate limit reached for gpt-test', 'rate_limited', true],
    [
      429,
      'rate_limit_exceeded',
      'Request too large for gpt-test: Limit 10, Requested 20',
      'context_overflow',
      false,
    ],
    [429, 'insufficient_quota', 'You exceeded your current quota', 'rate_limited', false],
    [500, 'server_error', 'The server had an error', 'server', true],
    [503, 'slow_down', 'Slow down', 'overloaded', true],
    [504, 'upstream', 'Gateway timeout', 'timeout', true],
  ])('%i %s "%s" is %s, retryable: %s', async (...row) => {
    const [status, code, words, failureClass, retryable] = row
    const failure = await refused(status, errorBody(code, words))
    expect(failure).toMatchObject({
      ...{ class: failureClass, retryable, status },
      ...{ requestId: 'req_1', code: 'provider' },
    })
    expect(failure.message).toContain(`${status} (${code}): ${words}`)
  })

  it.each([
    [
      'vLLM, long ago',
      400,
      {
        object: 'error',
        message: "This model's maximum context length is 4096 tokens",
        type: 'BadRequestError',
        code: 400,
      },
      'context_overflow',
    ],
    [
      'llama.cpp',
      400,
      {
        error: {
          code: 400,
          message: 'the request exceeds the available context size',
          type: 'exceed_context_size_error',
        },
      },
      'context_overflow',
    ],
    [
      'llama.cpp that still loads',
      503,
      { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
      'overloaded',
    ],
    ['LM Studio', 400, { error: 'The model crashed' }, 'invalid_request'],
    [
      'Mistral',
      422,
      { object: 'error', message: { detail: [{ msg: 'x' }] }, type: 'invalid_request_error', code: null },
      'invalid_request',
    ],
    ['FastAPI', 404, { detail: 'Not Found' }, 'not_found'],
    [
      'Groq at its capacity',
      498,
      { error: { message: 'capacity', type: 'x', code: 'capacity_exceeded' } },
      'overloaded',
    ],
    [
      'Azure',
      400,
      {
        error: {
          code: 'content_filter',
          message: "The prompt triggered Azure OpenAI's content management policy",
          status: 400,
        },
      },
      'content_filtered',
    ],
    ['OpenRouter', 402, { error: { code: 402, message: 'Insufficient credits' } }, 'permission'],
    [
      'Ollama',
      404,
      { error: { message: "model 'x' not found", type: 'not_found_error', code: null } },
      'not_found',
    ],
    [
      'DeepSeek',
      503,
      { error: { message: 'Service is too busy', type: 'service_unavailable_error', code: 'x' } },
      'overloaded',
    ],
  ])('in the words of %s is read', async (_, status, body, failureClass) => {
    const failure = await refused(status, JSON.stringify(body), {}, openaiChat)
    expect(failure).toMatchObject({ class: failureClass, status })
  })

  it.each([
    [{ 'x-should-retry': 'false' }, 500, 'server_error', false],
    [{ 'x-should-retry': 'true' }, 400, 'odd', true],
  ])('obeys the header %o', async (headers, status, code, retryable) => {
    expect((await refused(status, errorBody(code, 'x'), headers)).retryable).toBe(retryable)
  })
})

describe.each(openaiWires)('a connection to $name that does not come about', ({ make }) => {
  it('because no key is there, or none can be got, is a matter of authentication', async () => {
    const broken = () => Promise.reject(new Error(`no ${apiKey} today`))
    const { failure } = await collect(make({ apiKey: broken, baseURL: 'http://127.0.0.1:9' }))
    expect(failure).toMatchObject({ class: 'authentication', retryable: false })
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('veryverysecret')
    const kept = process.env['OPENAI_API_KEY']
    delete process.env['OPENAI_API_KEY']
    try {
      const { failure: none } = await collect(make({ baseURL: 'http://127.0.0.1:9' }))
      expect(none).toMatchObject({ class: 'authentication', retryable: false })
    } finally {
      if (kept !== undefined) process.env['OPENAI_API_KEY'] = kept
    }
  })

  it('because the client throws at once fails the call, not the subscriber', async () => {
    const create = () => {
      throw new RangeError('a mistake in the client')
    }
    const client = { responses: { create }, chat: { completions: { create } } }
    const { failure } = await collect(make({ client }))
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(failure?.cause).toBeInstanceOf(RangeError)
  })
})
