import { ConfigurationError, ProviderError, type Model, type ModelRequest } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { catchError, mergeMap, Observable, of, retry, share, throwError } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { httpHarness, modelContract, type ModelHarness } from '@tallystick/testkit/contract'
import { ollama } from '../src/ollama.ts'
import { ollamaWire } from './kit/contract-wires.ts'
import type { Loose } from './kit/loose.ts'

type Spoil = (model: Model, baseURL: string) => Model['stream']

const onSignals =
  (change: (signal: Loose) => Loose[]): Spoil =>
  (model) =>
  (request, context) =>
    model.stream(request, context).pipe(mergeMap((signal) => change(signal) as ModelSignal[]))
const onErrors =
  (change: (failure: ProviderError) => object): Spoil =>
  (model) =>
  (request, context) =>
    model
      .stream(request, context)
      .pipe(
        catchError((error: ProviderError) =>
          throwError(() => new ProviderError({ ...error.toFailure(), ...change(error) })),
        ),
      )
const onRequests =
  (change: (request: ModelRequest) => ModelRequest): Spoil =>
  (model) =>
  (request, context) =>
    model.stream(change(request), context)
const only = (type: string, change: (signal: Loose) => Loose[]) =>
  onSignals((signal) => (signal.type === type ? change(signal) : [signal]))
const onParts = (change: (part: Loose) => Loose) =>
  only('model_finished', (signal) => [{ ...signal, parts: signal.parts.map(change) }])

/** Mistakes that adapters make, each with the promise that it breaks. */
const mistakes: readonly (readonly [mistake: string, promise: string, spoil: Spoil])[] = [
  ['starts twice', 'at most one start', only('model_started', (signal) => [signal, signal])],
  ['never ends', 'at most one start', only('model_finished', () => [])],
  [
    'ends before the usage',
    'at most one start',
    only('model_usage', (signal) => [{ type: 'model_finished', stopReason: 'end', parts: [] }, signal]),
  ],
  [
    'trims its text',
    'each part of text',
    onParts((part) => (part.type === 'text' ? { ...part, text: part.text.trim() } : part)),
  ],
  ['repeats a delta', 'each part of text', only('model_text', (signal) => [signal, signal])],
  ['hides its reasoning', 'each part of reasoning', only('model_reasoning', () => [])],
  ['asks twice', 'requests each call once', only('model_tool_request', (signal) => [signal, signal])],
  [
    'forgets a call in the end',
    'requests each call once',
    onParts((part) => (part.name === 'get_time' ? { type: 'text', text: '', part: part.part } : part)),
  ],
  [
    'loses the input',
    'requests each call once',
    only('model_tool_request', (signal) => [{ ...signal, call: { ...signal.call, input: {} } }]),
  ],
  [
    'writes other input than it asks with',
    'requests each call once',
    only('model_tool_request', (signal) => [
      { type: 'model_tool_input', part: signal.part, name: signal.call.name, text: '{"a":1}' },
      signal,
    ]),
  ],
  [
    'leaves the schema of the answer to the runtime',
    'shows the schema of the answer',
    onRequests(({ outputSchema: _unsent, ...request }) => request),
  ],
  ['puts all parts in one place', 'a place of its own', onParts((part) => ({ ...part, part: 0 }))],
  [
    'always ends well',
    'why the reply ended',
    only('model_finished', (signal) => [{ ...signal, stopReason: 'end' }]),
  ],
  [
    'adds usage up',
    'tokens of the whole call',
    only('model_usage', (signal) => [
      {
        ...signal,
        usage: { inputTokens: signal.usage.inputTokens * 2, outputTokens: signal.usage.outputTokens },
      },
    ]),
  ],
  [
    'reports nothing for something',
    'what JSON can carry',
    only('model_started', (signal) => [{ ...signal, providerMessageId: undefined }]),
  ],
  [
    'decodes piece by piece',
    'however the bytes were cut',
    (_, baseURL) => (request, context) => {
      const careless: typeof globalThis.fetch = async (input, init) => {
        const response = await fetch(input, init)
        const decoded = new TransformStream<Uint8Array, Uint8Array>({
          transform: (bytes, controller) =>
            controller.enqueue(new TextEncoder().encode(new TextDecoder().decode(bytes))),
        })
        return new Response(response.body!.pipeThrough(decoded), response)
      }
      return ollama('qwen-test', { baseURL, fetch: careless }).stream(request, context)
    },
  ],
  [
    'calls before it is subscribed to',
    'one request a subscription',
    (model) => (request, context) => {
      model.stream(request, context).subscribe({ error: () => {} })
      return model.stream(request, context)
    },
  ],
  [
    'gives two calls one reply',
    'apart that stream at the same time',
    (model) => {
      let shared: Observable<ModelSignal> | undefined
      return (request, context) => (shared ??= model.stream(request, context).pipe(share()))
    },
  ],
  [
    'takes the end of the stream for the end of the reply',
    'wherever a reply ends before its proof',
    (model) => (request, context) =>
      model
        .stream(request, context)
        .pipe(
          catchError((error: ProviderError) =>
            error.class === 'truncated'
              ? of({ type: 'model_finished', stopReason: 'end', parts: [] } as const)
              : throwError(() => error),
          ),
        ),
  ],
  ['gives up at a cut', 'wherever a reply ends before its proof', onErrors(() => ({ retryable: false }))],
  ['gives up at a broken line', 'wherever the connection breaks', onErrors(() => ({ retryable: false }))],
  [
    'waits by the clock of its host',
    'an answer that does not begin',
    (model) => (request, context) =>
      model.stream(request, { clock: { ...context.clock, schedule: () => () => {} } }),
  ],
  [
    'waits by the clock of its host',
    'a reply that falls silent',
    (model) => (request, context) =>
      model.stream(request, { clock: { ...context.clock, schedule: () => () => {} } }),
  ],
  [
    'leaves a timer',
    'no timer running',
    (model) => (request, context) => {
      context.clock.schedule(1000, () => {})
      return model.stream(request, context)
    },
  ],
  ...(['given up before the answer', 'given up at any signal'] as const).map(
    (promise): readonly [string, string, Spoil] => [
      'continues when nobody listens',
      promise,
      (model) => (request, context) =>
        new Observable((subscriber) => {
          model.stream(request, context).subscribe({
            next: (signal) => subscriber.next(signal),
            error: (error: unknown) => subscriber.error(error),
            complete: () => subscriber.complete(),
          })
        }),
    ],
  ),
  ['knows one failure', 'what kind of refusal', onErrors(() => ({ class: 'server', retryable: true }))],
  [
    'tries again by itself',
    'what kind of refusal',
    (model) => (request, context) => model.stream(request, context).pipe(retry(1)),
  ],
  [
    'forgets the wait',
    'how long it was asked to wait',
    (model) => (request, context) =>
      model.stream(request, context).pipe(
        catchError((error: ProviderError) => {
          const { retryAfterMs: _, ...failure } = error.toFailure()
          return throwError(() => new ProviderError(failure))
        }),
      ),
  ],
  ['calls a page a broken line', 'takes no page for a reply', onErrors(() => ({ class: 'network' }))],
  ['calls an absence a page', 'no server could be reached', onErrors(() => ({ class: 'protocol' }))],
  [
    'tells the key',
    'without the key',
    onErrors((error) => ({ message: `${error.message} ${ollamaWire.secret}` })),
  ],
  [
    'throws what it likes',
    'what kind of refusal',
    (model) => (request, context) =>
      model.stream(request, context).pipe(catchError(() => throwError(() => new Error('oops')))),
  ],
  [
    'throws an object that is not an error',
    'says how long it was asked to wait',
    (model) => (request, context) =>
      model.stream(request, context).pipe(catchError(() => throwError(() => ({ status: 529 })))),
  ],
  [
    'writes into the request',
    'changes nothing of the request',
    onRequests((request) => {
      ;(request.messages as Loose[]).push({ role: 'user', parts: [{ type: 'text', text: 'Be quick.' }] })
      return request
    }),
  ],
  [
    'sends half of a history',
    'any history',
    onRequests((request) => ({
      ...request,
      messages: request.messages.filter(({ role }) => role !== 'tool'),
    })),
  ],
  [
    'forgets what its tools answered',
    'sends a reply back',
    onRequests((request) => ({
      ...request,
      messages: request.messages.map((message) =>
        message.role === 'tool'
          ? { ...message, results: message.results.map((result) => ({ ...result, content: [] })) }
          : message,
      ),
    })),
  ],
  [
    'makes one name of two',
    'tools of any name',
    onRequests((request) => ({
      ...request,
      tools: request.tools.map((tool) => ({ ...tool, name: tool.name.replaceAll(/[/.]/g, '_') })),
    })),
  ],
  [
    'does not care',
    'no tool may be called',
    onRequests((request) => ({ ...request, toolChoice: { type: 'auto' } })),
  ],
]

/** Waits for so many turns of the event loop, in which nothing that is going to happen here stays away. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** A harness around a spoiled adapter. What would hang for ever ends after a while: only spoiled ones are played here. */
function spoiledHarness(spoil: Spoil): ModelHarness {
  const harness = httpHarness({
    ...ollamaWire,
    model: (baseURL) => {
      const model = ollamaWire.model(baseURL)
      return { ...model, stream: spoil(model, baseURL) }
    },
  })
  return {
    ...harness,
    async stage(scenes) {
      const stage = await harness.stage(scenes)
      const patience = turns(3000)
      void patience.then(() => stage.close())
      const closed = (place: number) =>
        Promise.race([
          stage.closed(place),
          patience.then(() => Promise.reject(new Error('It is still open.'))),
        ])
      return { ...stage, closed }
    },
  }
}

describe('httpHarness', () => {
  it.each<[string, object, string]>([
    ['a wire without a model', { model: undefined }, 'httpHarness: model is missing: give a function'],
    ['a secret by another name', { secrets: 'k' }, 'secrets is not an option. Did you mean secret?'],
    ['what it lacks by a slip', { lacks: ['reasonning'] }, "Did you mean 'reasoning'?"],
  ])('refuses %s', (_what, wrong, message) => {
    const make = () => httpHarness({ ...ollamaWire, ...wrong })
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
  })
})

describe('the contract', () => {
  it.each(mistakes)('finds out an adapter that %s: %s', async (_, promise, spoil) => {
    const broken = modelContract.filter((one) => one.promise.includes(promise))
    expect(broken).toHaveLength(1)
    const { message } = await Promise.resolve(broken[0]!.run(spoiledHarness(spoil))).then(
      () => new Error('It was not found out.'),
      (error: Error) => error,
    )
    expect(message).toMatch(/Not so: |: expected .*, found |still open/s)
    expect(message).not.toContain('[object Object]')
    expect(message.length).toBeLessThan(1_000)
  })

  it('shows what an adapter threw in the place of a ProviderError', async () => {
    const throwing = (thrown: unknown): Promise<void> => {
      const stream: Model['stream'] = () => throwError(() => thrown)
      return modelContract[0]!.run(spoiledHarness(() => stream))
    }
    await expect(throwing({ status: 529 })).rejects.toThrow('and nothing else. It is {"status":529}.')
    await expect(throwing(new RangeError('oops'))).rejects.toThrow(
      'and nothing else. It is RangeError: oops.',
    )
  })

  it('has no promise that no mistake here breaks', () => {
    const unbroken = modelContract.filter(
      ({ promise }) => !mistakes.some(([, words]) => promise.includes(words)),
    )
    expect(unbroken.map(({ promise }) => promise)).toEqual([])
  })

  it('names each promise once', () => {
    const promises = modelContract.map(({ promise }) => promise)
    expect(new Set(promises).size).toBe(promises.length)
  })
})
