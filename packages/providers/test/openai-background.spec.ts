import { describe, expect, it } from 'vitest'
import { openai } from '../src/openai.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request, textShown } from './kit/collect.ts'
import { type Answer, type Loopback, serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { completed, counted, created, message } from './kit/openai-streams.ts'

const events = counted(created(), message(0, 'Hel', 'lo'), completed())
const cutAt = 4
const begun = (ending: 'break' | 'end' | 'stall'): Answer => ({
  pieces: [sseBytes(events.slice(0, cutAt))],
  ending,
})
const rest: Answer = { pieces: [sseBytes(events.slice(cutAt))] }
const model = ({ url: baseURL }: Loopback, background = true) =>
  openai('gpt-test', { apiKey: 'k', baseURL, background })

/** Waits for a request, and lets every pause before it pass. */
async function arrivalAfterPauses(server: Loopback, place: number, clock: ManualClock) {
  while (server.arrivals.length <= place) {
    // The watch for silence is the one other timer.
    if (clock.waiting > 1) clock.advance(1000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return await server.arrival(place)
}

describe('a response in the background', () => {
  it.each(['break', 'end'] as const)(
    'given a connection that ends early (%s), then the rest of it is sent for',
    async (ending) => {
      const server = await serve(begun(ending), rest)
      const clock = new ManualClock()
      const outcome = collect(model(server), request, clock)
      const { path } = await arrivalAfterPauses(server, 1, clock)
      const { signals, completed: whole } = await outcome
      expect([whole, textShown(signals), finished(signals)?.parts.length]).toEqual([true, 'Hello', 1])
      expect(signals.filter(({ type }) => type === 'model_started')).toHaveLength(1)
      expect(server.arrivals[0]!.body).toMatchObject({ background: true, store: true, stream: true })
      const { pathname, searchParams } = new URL(path, server.url)
      expect(pathname).toBe('/responses/resp_1')
      expect([searchParams.get('stream'), searchParams.get('starting_after')]).toEqual([
        'true',
        `${cutAt - 1}`,
      ])
      expect(path).toContain('reasoning.encrypted_content')
      expect(finished(signals)).not.toHaveProperty('providerState')
    },
  )

  it('given a connection that breaks again and again without a word, then the call fails as cut', async () => {
    const nothing: Answer = { pieces: [], ending: 'end' }
    const server = await serve(begun('end'), nothing)
    const clock = new ManualClock()
    const outcome = collect(model(server), request, clock)
    await arrivalAfterPauses(server, 3, clock)
    expect((await outcome).failure).toMatchObject({ class: 'truncated', retryable: true })
    const cancelled = await server.arrival(4)
    expect(cancelled.path).toBe('/responses/resp_1/cancel')
  })

  it('given a response that is gone, then the call fails as it broke, and may be tried again', async () => {
    const server = await serve(begun('end'), {
      ...{ status: 404, headers: { 'content-type': 'application/json' } },
      pieces: ['{"error":{"message":"Response not found"}}'],
    })
    const clock = new ManualClock()
    const outcome = collect(model(server), request, clock)
    await arrivalAfterPauses(server, 1, clock)
    expect((await outcome).failure).toMatchObject({ class: 'truncated', retryable: true })
  })

  it('given a subscriber that leaves, then the service is told to stop', async () => {
    const server = await serve(begun('stall'), {})
    const subscription = await new Promise<{ unsubscribe(): void }>((resolve) => {
      const left = model(server)
        .stream(request, { clock: new ManualClock() })
        .subscribe((signal) => {
          if (signal.type === 'model_text') setImmediate(() => resolve(left))
        })
    })
    subscription.unsubscribe()
    expect((await server.arrival(1)).path).toBe('/responses/resp_1/cancel')
  })
})

it('given no background, then a break is one, and nothing is sent for', async () => {
  const server = await serve(begun('end'), rest)
  const { failure } = await collect(model(server, false))
  expect([failure?.class, server.arrivals.length]).toEqual(['truncated', 1])
  expect(server.arrivals[0]!.body).not.toHaveProperty('background')
})
