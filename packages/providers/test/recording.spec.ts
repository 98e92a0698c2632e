import { readFileSync } from 'node:fs'
import { createRuntime, defineAgent, memoryLedger, type Model, ProviderError } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { testTool, manualClock, scriptedModel } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { take } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { failures } from '../src/anthropic/failure.ts'
import { ollama } from '../src/ollama.ts'
import { playedFetch, playedModel, recordingFetch, recordModel } from '../src/recording.ts'
import { createModel } from '../src/shared/model.ts'
import type { Warning } from '../src/shared/options.ts'
import { inPiecesOf, splitAt } from './kit/bytes.ts'
import { collect, request } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { type Answer, serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
import * as lines from './kit/ollama-lines.ts'
import { adapters, apiKey, newFile, nowhere } from './kit/recording.ts'

const linesOf = (file: string): Loose[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line))

describe.each(adapters)('the bytes of $name', ({ rich: bytes, answer, model }) => {
  const record = async (given: Answer, file: string) => {
    const server = await serve(given)
    return { server, outcome: await collect(model(server.url, recordingFetch(file))) }
  }

  it('are played as they were recorded, to the same signals, and without a network', async () => {
    const file = newFile()
    const { outcome } = await record(answer([bytes]), file)
    expect(outcome.completed).toBe(true)
    const fetch = playedFetch(file)
    expect(await collect(model(nowhere, fetch))).toEqual(outcome)
    fetch.assertComplete()
  })

  it('come in the pieces in which they came, wherever these were cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: bytes.length }), { maxLength: 12 }), async (places) => {
        const file = newFile()
        const seen: Uint8Array[] = []
        const pieces = splitAt(bytes, places)
        const source = async () =>
          new Response(
            new ReadableStream<Uint8Array>({
              pull(controller) {
                const piece = pieces[seen.length]
                if (piece === undefined) return controller.close()
                seen.push(piece)
                controller.enqueue(piece)
              },
            }),
          )
        const clock = new ManualClock()
        await collect(model(nowhere, recordingFetch(file, { fetch: source })), request, clock)
        // The rest after the last event is read when no subscriber waits for it any more.
        await clock.idle()
        const sent = linesOf(file)[0]!.request
        const played = await playedFetch(file)(sent.url, {
          method: sent.method,
          body: JSON.stringify(sent.body),
        })
        const again: Uint8Array[] = []
        for await (const piece of played.body!) again.push(piece)
        expect(again).toEqual(seen.map((piece) => new Uint8Array(piece)))
      }),
      { numRuns: tries(15) },
    )
  })

  it('of a refusal bring the same failure, with its wait', async () => {
    const file = newFile()
    const body = JSON.stringify({ error: { type: 'rate_limit_error', message: 'Slow down' } })
    const headers = { 'content-type': 'application/json', 'retry-after': '7', 'set-cookie': 'session=1' }
    const { outcome } = await record({ status: 429, pieces: [body], headers }, file)
    expect(outcome.failure).toMatchObject({ class: 'rate_limited', retryAfterMs: 7000, status: 429 })
    const again = await collect(model(nowhere, playedFetch(file)))
    expect(again.failure?.toFailure()).toEqual(outcome.failure?.toFailure())
    expect(readFileSync(file, 'utf8')).not.toContain('session=1')
  })

  it('that end with a broken connection break there again', async () => {
    const file = newFile()
    const server = await serve(answer(inPiecesOf(64, bytes).slice(0, 9), { ending: 'stall' }))
    const signals: ModelSignal[] = []
    const failure = await new Promise((resolve) => {
      model(server.url, recordingFetch(file))
        .stream(request, { clock: new ManualClock() })
        .subscribe({
          next: (signal) => {
            signals.push(signal)
            if (signal.type === 'model_text' || signal.type === 'model_reasoning') {
              server.arrivals[0]?.socket.resetAndDestroy()
            }
          },
          error: resolve,
        })
    })
    const again = await collect(model(nowhere, playedFetch(file)))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
    expect(again.failure?.toFailure()).toEqual((failure as ProviderError).toFailure())
    expect(again.signals).toEqual(signals)
  })

  it('do not come again where no server listened', async () => {
    const file = newFile()
    const outcome = await collect(model(nowhere, recordingFetch(file)))
    expect(outcome.failure).toMatchObject({ class: 'network' })
    const again = await collect(model('http://127.0.0.1:8', playedFetch(file)))
    expect(again.failure?.toFailure()).toEqual(outcome.failure?.toFailure())
  })

  it('that were given up in the middle continue to there, and wait to be given up', async () => {
    const file = newFile()
    const server = await serve(answer([bytes.subarray(0, 1100)], { ending: 'stall' }))
    const some = (fetch: typeof globalThis.fetch, url: string) =>
      new Promise<ModelSignal[]>((resolve, reject) => {
        const received: ModelSignal[] = []
        model(url, fetch)
          .stream(request, { clock: new ManualClock() })
          .pipe(take(4))
          .subscribe({
            next: (signal) => received.push(signal),
            complete: () => resolve(received),
            error: reject,
          })
      })
    const received = await some(recordingFetch(file), server.url)
    expect(linesOf(file).at(-1)).toEqual({ number: 1, ending: { type: 'abandoned' } })
    expect(received).toHaveLength(4)
    expect(await some(playedFetch(file), nowhere)).toEqual(received)
    // Without giving up, it ends as a silence does.
    const clock = new ManualClock()
    let count = 0
    const failure = await new Promise((resolve) => {
      model(nowhere, playedFetch(file))
        .stream(request, { clock })
        .subscribe({
          next: () => ++count === 4 && setImmediate(() => clock.advance(200_000)),
          error: resolve,
        })
    })
    expect(failure).toMatchObject({ class: 'timeout', retryable: true })
  })

  it('are written without the key, even where the answer repeats it over a border of its pieces', async () => {
    const file = newFile()
    const echo = JSON.stringify({ error: { message: `Wrong key: ${apiKey}`, type: 'authentication_error' } })
    const middle = echo.indexOf('veryvery')
    const pieces = [echo.slice(0, middle), echo.slice(middle)].map((piece) => new TextEncoder().encode(piece))
    await record({ ...answer(pieces), status: 401 }, file)
    const written = readFileSync(file, 'utf8')
    expect(written).toContain('Wrong key: [struck out]')
    expect(written).not.toMatch(/veryvery|Bearer/)
  })

  it('answer each request once, and a request that was not recorded by saying where it differs', async () => {
    const file = newFile()
    await record(answer([bytes]), file)
    const fetch = playedFetch(file)
    const other = await collect(model(nowhere, fetch), { ...request, messages: [user('Good bye')] })
    expect(other.failure).toMatchObject({ class: 'invalid_request', retryable: false })
    expect(other.failure?.message).toMatch(/differs at messages\.\d\.content/)
    expect(other.failure?.message).toContain('recording.jsonl')
    expect(() => fetch.assertComplete()).toThrow(/1 of 1 exchanges/)
    expect((await collect(model(nowhere, fetch))).completed).toBe(true)
    fetch.assertComplete()
    expect((await collect(model(nowhere, fetch))).failure?.message).toContain('have been played')
    const inOrder = playedFetch(file, { match: 'order' })
    const answered = await collect(model(nowhere, inOrder), { ...request, messages: [user('Good bye')] })
    expect(answered.completed).toBe(true)
  })
})

it('what is secret in a request’s body, its query or its user is not written', async () => {
  const file = newFile()
  const fetch = recordingFetch(file, { fetch: async () => Response.json({ ok: true }) })
  const body = {
    mcp_servers: [{ name: 'x', authorization_token: 'tok-123456' }],
    tools: [{ headers: { Authorization: 'Bearer abcdef' }, input_schema: { properties: { password: {} } } }],
    messages: [`My key is sk-proj-abcdefghijklmnop, and secret-of-the-header.`],
    max_tokens: 7,
  }
  const headers = { 'x-api-key': 'secret-of-the-header', cookie: 'id=secret-of-the-cookie' }
  await fetch('https://api.example.org/v1/x?key=query-secret', {
    ...{ method: 'POST', body: JSON.stringify(body), headers },
  }).then((response) => response.text())
  const written = readFileSync(file, 'utf8')
  expect(written).not.toMatch(/tok-123456|abcdef|secret-of-the-header|secret-of-the-cookie|query-secret/)
  expect(linesOf(file)[0].request).toEqual({
    method: 'POST',
    url: 'https://api.example.org/v1/x',
    body: {
      mcp_servers: [{ name: 'x', authorization_token: '[struck out]' }],
      tools: [{ headers: { Authorization: '[struck out]' }, input_schema: { properties: { password: {} } } }],
      messages: ['My key is sk-[struck out], and [struck out].'],
      max_tokens: 7,
    },
  })
  // The same request finds its answer again, whatever its secrets are by then.
  const played = await playedFetch(file)('https://elsewhere.example.org/v1/x', {
    method: 'POST',
    body: JSON.stringify({ ...body, mcp_servers: [{ name: 'x', authorization_token: 'tok-another' }] }),
    headers,
  })
  expect(await played.json()).toEqual({ ok: true })
})

it('a word that servers without keys are given for one is not a secret, and stays where a reply says it', async () => {
  const file = newFile()
  const reply = 'Bearer of ollama-keys: use ollama, dummy-key.'
  const fetch = recordingFetch(file, { fetch: async () => new Response(reply) })
  const asked = {
    method: 'POST',
    body: '{}',
    headers: { authorization: 'Bearer ollama', 'x-api-key': 'dummy-key' },
  }
  await fetch('http://h/p', asked).then((response) => response.text())
  expect(await (await playedFetch(file)('http://h/p', asked)).text()).toBe(reply)
})

it('requests that are made at once find their answers, in whichever order these came', async () => {
  const file = newFile()
  const release: (() => void)[] = []
  const fetch = recordingFetch(file, {
    fetch: async (_, init) => {
      await new Promise<void>((resolve) => release.push(resolve))
      return new Response(`answer to ${init?.body as string}`)
    },
  })
  const asked = ['a', 'b'].map((body) =>
    fetch('http://h/p', { method: 'POST', body }).then((response) => response.text()),
  )
  while (release.length < 2) await new Promise((resolve) => setImmediate(resolve))
  release[1]!()
  await asked[1]
  release[0]!()
  await asked[0]
  expect(linesOf(file).map(({ number }) => number)).toEqual([2, 2, 2, 1, 1, 1])
  const played = playedFetch(file, { match: 'order' })
  expect(await (await played('http://h/p', { method: 'POST', body: 'c' })).text()).toBe('answer to a')
  expect(await (await played(new Request('http://h/p', { method: 'POST', body: 'd' }))).text()).toBe(
    'answer to b',
  )
})

describe('a whole run', () => {
  const weather = () => testTool({ name: 'get_weather', run: () => '21 degrees' })
  const tools = () => [weather(), testTool({ name: 'get_time', run: () => 'noon' })]
  const runOf = async (model: Model) => {
    const agent = defineAgent({ name: 'assistant', instructions: 'Be brief.', model, tools: tools() })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Weather?')
    const { status, reason, text: said, usage } = await run.result
    return { status, reason, text: said, usage }
  }
  const answers = [
    lines.answer([lines.lineBytes(lines.rich)]),
    lines.answer([lines.lineBytes([lines.text('It is warm.'), lines.done()])]),
  ]

  it('recorded by its bytes is played by another run, whose calls have other ids', async () => {
    const file = newFile()
    const server = await serve(...answers)
    const recorded = await runOf(ollama('qwen-test', { baseURL: server.url, fetch: recordingFetch(file) }))
    expect(recorded).toMatchObject({ reason: 'answered', text: 'It is warm.' })
    const fetch = playedFetch(file)
    expect(await runOf(ollama('qwen-test', { baseURL: nowhere, fetch }))).toEqual(recorded)
    fetch.assertComplete()
    expect(server.arrivals).toHaveLength(2)
  })

  it('recorded by its signals is played by another run', async () => {
    const file = newFile()
    const server = await serve(...answers)
    const recorded = await runOf(recordModel(ollama('qwen-test', { baseURL: server.url }), file))
    const played = playedModel(file)
    expect(played).toMatchObject({ provider: 'ollama', api: 'chat', modelId: 'qwen-test' })
    expect(await runOf(played)).toEqual(recorded)
    played.assertComplete()
    expect(played.requests).toHaveLength(2)
    // What was said is in the file once, and what was asked is not.
    expect(readFileSync(file, 'utf8')).not.toContain('Be brief.')
  })
})

const images: Warning = { what: 'images', message: 'Images were left out.' }
const choice: Warning = { what: 'choice', message: 'No choice was told.' }

/** A model whose calls warn in turn, and what its option gets of that. */
function warningModel(inner: ReturnType<typeof scriptedModel>, warnings: readonly (readonly Warning[])[]) {
  const reported: string[] = []
  const model = createModel<object, object, Warning>({
    provider: inner.provider,
    api: inner.api,
    modelId: inner.modelId,
    options: { onWarning: (warning: Warning) => reported.push(warning.message) },
    recorded: { pinned: [], written: [] },
    failures,
    client: {},
    start: ({ request, context, subscriber, warn }) => {
      warnings[inner.requests.length]?.forEach(warn)
      const subscription = inner.stream(request, context).subscribe(subscriber)
      return () => subscription.unsubscribe()
    },
  })
  return { model, reported }
}

async function eventsOf(model: Model) {
  const ledger = memoryLedger()
  const tools = [testTool({ name: 'look' })]
  const agent = defineAgent({ name: 'a', instructions: '', model, tools, retry: { maxAttempts: 1 } })
  const { runId } = await createRuntime({ ledger, host: { clock: manualClock() } }).run(agent, 'Go.').result
  return Array.fromAsync(ledger.read(runId))
}

describe('what a wire could not carry of a request', () => {
  it('given replies, when they begin, then it is recorded with each, and reported once', async () => {
    const inner = scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
    ])
    const { model, reported } = warningModel(inner, [[images], [images, choice], []])
    const started = (await eventsOf(model)).filter(({ type }) => type === 'assistant_started')
    expect(started.map((event) => ('warnings' in event ? event.warnings : undefined))).toEqual([
      ['Images were left out.'],
      ['Images were left out.', 'No choice was told.'],
      undefined,
    ])
    expect(reported).toEqual(['Images were left out.', 'No choice was told.'])
  })

  it('given a call that fails before it replies, when it is recorded, then its failure says it', async () => {
    const model = createModel<object, object, Warning>({
      ...{ provider: 'p', api: 'a', modelId: 'm', options: {}, client: {}, failures },
      recorded: { pinned: [], written: [] },
      start: ({ subscriber, warn }) => {
        warn(images)
        subscriber.error(new ProviderError({ class: 'invalid_request', message: 'No.', retryable: false }))
        return () => {}
      },
    })
    const failed = (await eventsOf(model)).find(({ type }) => type === 'model_stream_failed')
    expect(failed).toMatchObject({
      failure: {
        message: 'No. The request had gone out changed: Images were left out.',
      },
    })
  })
})
