// What a memory ledger keeps of pieces that the machine has made together is what it keeps of each event alone.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryLedger, type Ledger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { advance } from '@tallystick/core/machine'
import { stretchesOf } from '@tallystick/core/store-kit'
import { given, stamped } from '@tallystick/core/testing'
import type { Signal } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { begun, called, runId } from './pages.ts'

const facts = [...begun(), called()]
const beginning = stamped(runId, facts)
const state = given(facts).state as RunState
const { at, seq, epoch } = state

/** The events of some appends, most of which are in stretches. */
const batches = fc
  .array(
    fc.array(
      fc.record({
        type: fc.constantFrom('model_text' as const, 'model_text' as const, 'model_reasoning' as const),
        part: fc.constantFrom(0, 0, 0, 1),
        text: fc.constantFrom('a', 'bc ', '語', '\ud800'),
      }),
      { minLength: 1, maxLength: 12 },
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((appends) => {
    let before = state
    return appends.map((pieces) => {
      const signals = pieces.map((piece): Signal => ({ ...piece, turn: 1, attempt: 1 }))
      const made = advance(before, signals, { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }) })
      before = made.state
      return made.events
    })
  })

async function stored(appends: readonly (readonly RuntimeEvent[])[]): Promise<Ledger> {
  const ledger = memoryLedger()
  let expectedSeq = 0
  for (const events of [beginning, ...appends]) {
    const head = await ledger.append(runId, { expectedSeq, epoch }, events, { durability: 'lazy' })
    expect(head).toEqual({ seq: expectedSeq + events.length, epoch })
    expectedSeq = head.seq
  }
  return ledger
}

describe('a memory ledger with pieces that the machine has made together', () => {
  it('reads, finds and tails the same as with each event alone', async () => {
    await fc.assert(
      fc.asyncProperty(batches, fc.nat({ max: 60 }), fc.nat({ max: 60 }), async (appends, fromSeq, toSeq) => {
        const [known, alone] = await Promise.all([
          stored(appends),
          stored(appends.map((events) => [...events])),
        ])
        for (const range of [{}, { fromSeq }, { toSeq }, { fromSeq, toSeq }]) {
          const read = await Array.fromAsync(known.read(runId, range))
          expect(read).toStrictEqual(await Array.fromAsync(alone.read(runId, range)))
          expect(read.every((event) => Object.isFrozen(event))).toBe(true)
        }
        const query = { types: ['assistant_text_delta' as const] }
        expect(await Array.fromAsync(known.find(query))).toStrictEqual(
          await Array.fromAsync(alone.find(query)),
        )
        expect(await Array.fromAsync(known.tail())).toStrictEqual(await Array.fromAsync(alone.tail()))
      }),
      { numRuns: tries(100) },
    )
  })

  it('knows them again where the acknowledgement was lost, and takes no others in their place', async () => {
    await fc.assert(
      fc.asyncProperty(batches, fc.nat(), fc.boolean(), async (appends, place, isCopy) => {
        const ledger = await stored(appends)
        const [events = []] = appends
        const again = (list: readonly RuntimeEvent[]) =>
          ledger.append(runId, { expectedSeq: seq, epoch }, list, { durability: 'lazy' })
        await expect(again(isCopy ? [...events] : events)).resolves.toEqual({
          seq: seq + events.length,
          epoch,
        })
        const index = place % events.length
        const others = events.with(index, { ...events[index], text: 'other' } as RuntimeEvent)
        await expect(again(others)).rejects.toThrow('expects seq')
      }),
      { numRuns: tries(100) },
    )
  })

  it('does read while more is appended, up to where it began', async () => {
    const ledger = memoryLedger()
    const text = (count: number): readonly Signal[] =>
      Array.from({ length: count }, () => ({ type: 'model_text', part: 0, text: 'a', turn: 1, attempt: 1 }))
    const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }) }
    const first = advance(state, text(3), options)
    const second = advance(first.state, text(2), options)
    expect([first, second].map(({ events }) => stretchesOf(events).length)).toEqual([1, 1])
    await ledger.append(runId, { expectedSeq: 0, epoch }, beginning, { durability: 'lazy' })
    await ledger.append(runId, { expectedSeq: seq, epoch }, first.events, { durability: 'lazy' })
    const seen: number[] = []
    for await (const event of ledger.read(runId)) {
      seen.push(event.seq)
      if (event.seq !== seq + 1) continue
      await ledger.append(runId, { expectedSeq: seq + 3, epoch }, second.events, { durability: 'lazy' })
    }
    expect(seen).toEqual(Array.from({ length: seq + 3 }, (_, index) => index + 1))
    expect(await ledger.head(runId)).toMatchObject({ seq: seq + 5 })
  })
})
