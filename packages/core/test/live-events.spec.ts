import type { RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { LiveEvents } from '../src/runtime/run-streams.ts'

const runId = sampleRunId(1)
const delta = sampleFacts(runId).assistant_text_delta
const [one, two, three] = stampFacts(runId, [delta, delta, delta]) as [
  RuntimeEvent,
  RuntimeEvent,
  RuntimeEvent,
]

describe('live events', () => {
  it('reach those that follow when they come, in order, until they leave', () => {
    const live = new LiveEvents()
    const seen: [string, number][] = []
    live.next(one)
    const early = live.subscribe(({ seq }) => {
      seen.push(['early', seq])
      if (seq === two.seq) live.subscribe((event) => seen.push(['late', event.seq]))
    })
    live.next(two)
    early.unsubscribe()
    live.next(three)
    expect(seen).toEqual([
      ['early', two.seq],
      ['late', three.seq],
    ])
  })

  it('reach no reader that another one has unsubscribed meanwhile, and all the others', () => {
    const live = new LiveEvents()
    const seen: string[] = []
    live.subscribe(() => {
      seen.push('first')
      second.unsubscribe()
    })
    const second = live.subscribe(() => seen.push('second'))
    live.subscribe(() => seen.push('third'))
    live.next(one)
    live.next(two)
    expect(seen).toEqual(['first', 'third', 'first', 'third'])
  })

  it('end with an error for those that follow, and for those that come later', () => {
    const live = new LiveEvents()
    const fault = new Error('The ledger is gone.')
    const seen: unknown[] = []
    const reader = {
      next: (event: RuntimeEvent) => seen.push(event),
      error: (error: unknown) => seen.push(error),
    }
    live.subscribe(reader)
    live.error(fault)
    live.error(new Error('It is too late for another.'))
    live.next(one)
    expect(seen).toEqual([fault])
    live.subscribe(reader)
    expect(seen).toEqual([fault, fault])
  })
})
