import { describe, expect, it } from 'vitest'
import type { Fact, ModelFailure, RetryPolicy } from '@tallystick/core/vocabulary'
import { given, stampFacts } from '@tallystick/testkit'
import { begun, called, failure, runId } from './pages.ts'
import { ofType, stage } from './stage.ts'

/** How long the next attempt is waited for, in milliseconds, when the n-th attempt of a turn fails; `undefined`: for ever. */
function waitAfter(
  more: Partial<ModelFailure>,
  options: {
    readonly random?: number
    readonly retry?: Partial<RetryPolicy>
    readonly attempts?: number
  } = {},
): number | undefined {
  const { random = 0, retry = {}, attempts = 1 } = options
  const page: Fact[] = [...begun({ retry }), called()]
  for (let attempt = 1; attempt < attempts; attempt++) {
    page.push({ type: 'model_stream_failed', turn: 1, attempt, failure: failure(), retryAt: 0 })
    page.push(called(1, attempt + 1))
  }
  const { at } = stampFacts(runId, page).at(-1)!
  const failed = { type: 'model_failed', turn: 1, attempt: attempts, failure: failure(more) } as const
  const { decision } = given(page).when(failed, { at, random })
  if (!('facts' in decision) || decision.facts[0]?.type !== 'model_stream_failed')
    throw new Error('no failure')
  const { retryAt } = decision.facts[0]
  return retryAt === undefined ? undefined : retryAt - at
}

describe('a failed model call', () => {
  it('is tried again after a wait that doubles, up to the cap', () => {
    const retry = { baseMs: 100, capMs: 1_000, maxAttempts: 9 }
    const waits = [1, 2, 3, 4, 5, 6].map((attempts) => waitAfter({}, { retry, attempts }))
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000])
  })

  it('waits up to a half less, as the given randomness says', () => {
    const retry = { baseMs: 1_000, capMs: 60_000 }
    expect([0, 0.5, 0.999_999].map((random) => waitAfter({}, { retry, random }))).toEqual([1_000, 750, 500])
  })

  it('waits as long as the provider asks, whatever the cap, rounded up', () => {
    const retry = { baseMs: 100, capMs: 1_000 }
    expect(waitAfter({ retryAfterMs: 30_000 }, { retry, random: 0.9 })).toBe(30_000)
    expect(waitAfter({ retryAfterMs: 0.2 }, { retry })).toBe(1)
    expect(waitAfter({ retryAfterMs: 0 }, { retry })).toBe(0)
  })

  it('is given up when the provider asks for more patience than there is', () => {
    const retry = { maxRetryAfterMs: 60_000 }
    expect(waitAfter({ retryAfterMs: 60_000 }, { retry })).toBe(60_000)
    expect(waitAfter({ retryAfterMs: 60_001 }, { retry })).toBeUndefined()
  })

  it('is given up at once when another attempt could not do better', () => {
    expect(waitAfter({ retryable: false, retryAfterMs: 5 })).toBeUndefined()
  })

  it('is given up after as many attempts as there may be', () => {
    const retry = { maxAttempts: 3 }
    expect([1, 2, 3].map((attempts) => waitAfter({}, { retry, attempts }) !== undefined)).toEqual([
      true,
      true,
      false,
    ])
    expect(waitAfter({}, { retry: { maxAttempts: 1 } })).toBeUndefined()
  })

  it('never waits for a time that is not a time', () => {
    for (const retryAfterMs of [Number.NaN, Number.NEGATIVE_INFINITY, -5]) {
      expect(waitAfter({ retryAfterMs })).toBe(500)
    }
    expect(waitAfter({ retryAfterMs: Number.POSITIVE_INFINITY })).toBeUndefined()
  })
})

describe('a run whose model fails', () => {
  const overloaded = { fail: 'overloaded' } as const

  it('waits and asks again, with the same request, in the same turn', async () => {
    const set = stage({ steps: [{ text: 'He', ...overloaded }, overloaded, { text: 'Hello.' }] })
    const begins = set.clock.now()
    const result = await set.play()
    expect(result).toMatchObject({ reason: 'answered', text: 'Hello.', turns: 1 })
    expect(set.clock.now() - begins).toBe(500 + 1_000)
    expect(set.model.requests).toHaveLength(3)
    expect(set.model.requests[2]).toEqual(set.model.requests[0])
    const events = await set.eventsOf(result.runId)
    const calls = ofType(events, 'model_call_started')
    expect(calls.map(({ turn, attempt }) => [turn, attempt])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ])
    expect(new Set(calls.map(({ requestDigest }) => requestDigest)).size).toBe(1)
    // Attempts are never spliced: the message is that of the last.
    expect(ofType(events, 'assistant_message_finished')).toMatchObject([
      { attempt: 3, partial: false, parts: [{ type: 'text', text: 'Hello.' }] },
    ])
  })

  it('runs no call of a failed attempt, and gives each a result before the next', async () => {
    const step = { text: 'Hm.', toolCalls: [{ name: 'look', input: {} }] }
    const set = stage({ steps: [{ ...step, ...overloaded }, { text: 'Never mind.' }] })
    const result = await set.play()
    const events = await set.eventsOf(result.runId)
    expect(ofType(events, 'tool_result').map(({ outcome }) => outcome)).toEqual(['skipped'])
    expect(set.model.requests[1]?.messages).toEqual(set.model.requests[0]?.messages)
    expect(result).toMatchObject({ reason: 'answered', toolCalls: 0 })
  })

  it('keeps what came of the last attempt when it gives up, and says why', async () => {
    const set = stage({ steps: [overloaded, { text: 'Hel', ...overloaded }], retry: { maxAttempts: 2 } })
    const result = await set.play()
    expect(result).toMatchObject({
      reason: 'model_failed',
      text: 'Hel',
      detail: 'Scripted failure: overloaded.',
    })
    expect(ofType(await set.eventsOf(result.runId), 'assistant_message_finished')).toMatchObject([
      { attempt: 2, partial: true, stopReason: 'failed' },
    ])
  })

  it('says why it gives up when nothing came at all', async () => {
    const result = await stage({ steps: [{ fail: 'authentication' }] }).play()
    expect(result).toMatchObject({
      reason: 'model_failed',
      text: '',
      detail: 'Scripted failure: authentication.',
    })
  })

  it.each([
    ['context_overflow', 'context_overflow'],
    ['content_filtered', 'refused'],
    ['invalid_request', 'model_failed'],
  ] as const)('that is %s ends as %s', async (fail, reason) => {
    expect(await stage({ steps: [{ fail }] }).play()).toMatchObject({ status: 'done', reason })
  })

  it('has as many attempts again in its next turn', async () => {
    const set = stage({
      steps: [overloaded, { toolCalls: [{ name: 'look', input: {} }] }, overloaded, { text: 'Done.' }],
      retry: { maxAttempts: 2 },
    })
    expect(await set.play()).toMatchObject({ reason: 'answered', text: 'Done.', turns: 2 })
  })
})
