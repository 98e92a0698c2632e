import { Observable, of, throwError } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { ProviderError, type Model, type RunResult, type RuntimeEvent } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { ofType, stage, type Stage } from './stage.ts'

function modelOf(stream: Model['stream']): Model {
  return { provider: 'acme', api: 'wire', modelId: 'acme-1', stream }
}

const finished: ModelSignal = {
  type: 'model_finished',
  stopReason: 'end',
  parts: [{ part: 0, type: 'text', text: 'Hello.' }],
}
const hello: ModelSignal = { type: 'model_text', part: 0, text: 'Hello.' }

async function playModel(
  stream: Model['stream'],
): Promise<{ result: RunResult; events: readonly RuntimeEvent[]; set: Stage }> {
  const set = stage({ model: modelOf(stream) })
  const result = await set.play()
  return { result, events: await set.eventsOf(result.runId), set }
}

/** Streams these signals, as an adapter in plain JavaScript could. */
const signals = (...list: readonly unknown[]): Observable<ModelSignal> => of(...(list as ModelSignal[]))

describe('a model adapter that keeps its contract', () => {
  it('may report everything at once, before it is even subscribed to', async () => {
    const { result } = await playModel(() => signals(hello, finished))
    expect(result).toMatchObject({ reason: 'answered', text: 'Hello.' })
  })

  it('may leave out deltas: what it did not stream is made up for', async () => {
    const { result, events } = await playModel(() => signals(finished))
    expect(result).toMatchObject({ reason: 'answered', text: 'Hello.' })
    expect(ofType(events, 'assistant_text_delta').map(({ text }) => text)).toEqual(['Hello.'])
  })
})

describe('a model adapter that breaks its contract', () => {
  const breaches: Readonly<Record<string, { stream: Model['stream']; what: string }>> = {
    'completes without model_finished': {
      stream: () => signals(hello),
      what: 'it completed without model_finished',
    },
    'throws before it streams': {
      stream: () => {
        throw new RangeError('no socket')
      },
      what: 'it threw RangeError: no socket',
    },
    'errors with something that is not a ProviderError': {
      stream: () => throwError(() => 'out of paper'),
      what: 'it threw out of paper',
    },
    'answers no Observable': {
      stream: () => undefined as never,
      what: 'its stream did not return an Observable',
    },
    'reports nothing at all': { stream: () => signals(null), what: 'it reported' },
    'reports an unknown signal': {
      stream: () => signals({ type: 'model_dreamt' }, finished),
      what: 'it reported',
    },
    'reports text that is not text': {
      stream: () => signals({ type: 'model_text', part: 0, text: 7 }, finished),
      what: 'it reported model_text that is not sound: text',
    },
    'reports a place that is not one': {
      stream: () => signals({ type: 'model_text', part: Number.NaN, text: 'x' }, finished),
      what: 'it reported model_text that is not sound: part',
    },
    'reports usage that JSON cannot carry': {
      stream: () => signals({ type: 'model_usage', usage: { inputTokens: Infinity } }, finished),
      what: 'it reported model_usage that is not sound: usage.inputTokens',
    },
    'reports a raw object that JSON cannot carry': {
      stream: () => signals({ type: 'model_usage', usage: {}, raw: { tokens: 1n } }, finished),
      what: 'it reported model_usage that is not sound: raw',
    },
    'reports a call whose input is not an object': {
      stream: () =>
        signals({
          type: 'model_tool_request',
          part: 0,
          call: { type: 'tool_call', providerCallId: 'c', name: 'look', input: [] },
        }),
      what: 'it reported model_tool_request that is not sound: call.input',
    },
    'finishes with other text than it streamed': {
      stream: () => signals({ ...hello, text: 'Goodbye.' }, finished),
      what: 'part 0 is not what was streamed for it',
    },
    'finishes without a part that it streamed': {
      stream: () => signals({ type: 'model_text', part: 1, text: 'More.' }, finished),
      what: 'part 1 was streamed and is missing in the finished reply',
    },
    'finishes with a call where it streamed text': {
      stream: () => signals(hello, { ...finished, parts: [{ part: 0, ...callOf('look', {}) }] }),
      what: 'part 0 is not what was streamed for it',
    },
    'finishes with parts out of order': {
      stream: () =>
        signals({
          ...finished,
          parts: [
            { part: 1, type: 'text', text: 'b' },
            { part: 0, type: 'text', text: 'a' },
          ],
        }),
      what: 'the parts of the finished reply are not in ascending order',
    },
    'finishes with one place twice': {
      stream: () =>
        signals({
          ...finished,
          parts: [
            { part: 0, ...callOf('look', {}) },
            { part: 0, ...callOf('look', {}) },
          ],
        }),
      what: 'the parts of the finished reply are not in ascending order',
    },
    'reports one call twice': {
      stream: () =>
        signals(...[0, 1].map(() => ({ type: 'model_tool_request', part: 0, call: callOf('look', {}) }))),
      what: 'part 0 was reported as a whole call twice',
    },
    'forgets a call that it has reported': {
      stream: () =>
        signals(
          { type: 'model_tool_request', part: 0, call: callOf('look', {}) },
          { ...finished, parts: [] },
        ),
      what: 'is missing in the finished reply',
    },
    'finishes with another call than it has reported': {
      stream: () =>
        signals(
          { type: 'model_tool_request', part: 0, call: callOf('pay', { usd: 5 }) },
          { ...finished, parts: [{ part: 0, ...callOf('pay', { usd: 5_000 }) }] },
        ),
      what: 'is not the call that was reported for it',
    },
  }

  it.each(Object.entries(breaches))(
    'fails the call when it %s, and is not tried again',
    async (_name, breach) => {
      let calls = 0
      const { result, events, set } = await playModel((request, context) => {
        calls++
        return breach.stream(request, context)
      })
      expect(result).toMatchObject({ status: 'done', reason: 'model_failed' })
      expect(calls).toBe(1)
      const failures = ofType(events, 'model_stream_failed')
      expect(failures.map(({ failure }) => [failure.class, failure.retryable])).toEqual([['protocol', false]])
      expect(failures[0]?.failure.message).toMatch(/^The adapter .*acme.* broke its contract: /)
      expect(failures[0]?.failure.message).toContain(breach.what)
      expect(result.detail).toBe(failures[0]?.failure.message)
      expect(set.reported).toEqual([])
    },
  )

  it('keeps what it had streamed, marked as partial', async () => {
    const { result, events } = await playModel(() => signals(hello))
    expect(result.text).toBe('Hello.')
    expect(ofType(events, 'assistant_message_finished')).toMatchObject([
      { partial: true, stopReason: 'failed' },
    ])
  })

  it('is not heard any more once it has finished', async () => {
    const late = new Observable<ModelSignal>((subscriber) => {
      subscriber.next(hello)
      subscriber.next(finished)
      subscriber.next({ ...hello, text: ' And more.' })
      subscriber.next(finished)
      subscriber.error(new Error('late'))
    })
    const { result, events } = await playModel(() => late)
    expect(result).toMatchObject({ reason: 'answered', text: 'Hello.' })
    expect(ofType(events, 'assistant_text_delta')).toHaveLength(1)
    expect(ofType(events, 'model_stream_failed')).toEqual([])
  })

  it('is not heard any more once the run is cancelled', async () => {
    let emit: (signal: ModelSignal) => void = () => {}
    const set = stage({
      model: modelOf(
        () =>
          new Observable((subscriber) => {
            emit = (signal) => subscriber.next(signal)
            subscriber.next(hello)
          }),
      ),
    })
    const run = set.start()
    const cancelled = new Promise<void>((resolve) => {
      run.textUpdates$.subscribe(() => resolve())
    }).then(() => run.cancel())
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled', text: 'Hello.' })
    expect(await cancelled).toEqual({ accepted: true })
    const before = await set.eventsOf(run)
    emit(finished)
    await set.waitUntilSettled(Promise.resolve())
    expect(await set.eventsOf(run)).toEqual(before)
  })

  it('cannot end the run, or the process, by a teardown that throws', async () => {
    const { result, set } = await playModel(
      () =>
        new Observable((subscriber) => {
          subscriber.next(hello)
          subscriber.next(finished)
          return () => {
            throw new Error('cannot close')
          }
        }),
    )
    expect(result).toMatchObject({ reason: 'answered', text: 'Hello.' })
    expect(set.reported.map(String)).toEqual([expect.stringContaining('cannot close')])
  })

  it('may give invalid numbers with a failure: they say nothing', async () => {
    const { events } = await playModel(() => {
      throw new ProviderError({
        ...{ class: 'authentication', message: 'No key.', retryable: false },
        ...{ retryAfterMs: Number.NaN, status: Infinity },
      })
    })
    expect(ofType(events, 'model_stream_failed')[0]?.failure).toEqual({
      ...{ class: 'authentication', message: 'No key.', retryable: false },
    })
  })

  it('cannot fail in a class that does not exist', async () => {
    const { events } = await playModel(() => {
      throw new ProviderError({ class: 'sulking' as never, message: 'No.', retryable: true })
    })
    expect(ofType(events, 'model_stream_failed')).toMatchObject([
      { failure: { class: 'protocol', retryable: false } },
    ])
  })

  it('keeps the class of a ProviderError, however it is thrown', async () => {
    const error = new ProviderError({
      class: 'authentication',
      message: 'No key.',
      retryable: false,
      status: 401,
    })
    const { result, events } = await playModel(() => {
      throw error
    })
    expect(result).toMatchObject({ reason: 'model_failed', detail: 'No key.' })
    expect(ofType(events, 'model_stream_failed')[0]?.failure).toEqual({
      ...{ class: 'authentication', message: 'No key.', retryable: false, status: 401 },
    })
  })
})

function callOf(name: string, input: object): object {
  return { type: 'tool_call', providerCallId: 'c', name, input }
}
