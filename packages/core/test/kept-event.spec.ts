import { describe, expect, it } from 'vitest'
import { memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { Json } from '@tallystick/core/vocabulary'
import { keepEvent } from '../src/ledger/memory-ledger.ts'

const run = sampleRunId(1)
const start = sampleFacts(run).run_started

/** A tool's progress that carries a value, as the second event of a run. */
function carrying(data: unknown): RuntimeEvent {
  const [, event] = stampFacts(run, [start, { ...sampleFacts(run).tool_progress, data: null }])
  return { ...event, data } as RuntimeEvent
}

/** What the ledger kept of a value, and whether it is the value itself. */
function kept(data: unknown): readonly [unknown, boolean] {
  const event = Object.freeze(carrying(data))
  const found = keepEvent(event)
  return [(found as RuntimeEvent & { readonly data: unknown }).data, found === event]
}

const frozen = <T extends object>(value: T): T => Object.freeze(value)

describe('an event that a memory ledger keeps', () => {
  it.each<readonly [string, unknown]>([
    ['a number', 1.5],
    ['text', 'a'],
    ['nothing', null],
    ['a list', frozen([true, frozen({ deep: frozen([]) })])],
  ])('is the event itself where it is frozen and carries %s', (_name, data) => {
    expect(kept(data)).toEqual([data, true])
  })

  it.each<readonly [string, unknown, Json]>([
    ['an object that may change', { a: 1 }, { a: 1 }],
    ['a list that may change', [1], [1]],
    ['an object in a frozen one that may change', frozen({ a: { b: 1 } }), { a: { b: 1 } }],
    ['a zero with a sign', -0, 0],
    ['a field without a value', frozen({ a: undefined, b: 1 }), { b: 1 }],
    ['a field under a symbol', frozen({ [Symbol('s')]: 1, b: 1 }), { b: 1 }],
    [
      'an object of a class',
      frozen(
        new (class Point {
          x = 1
        })(),
      ),
      { x: 1 },
    ],
  ])('is a frozen copy, as JSON reads it back, where it carries %s', (_name, data, expected) => {
    const [found, isSame] = kept(data)
    expect([found, isSame]).toStrictEqual([expected, false])
    expect(typeof found !== 'object' || Object.isFrozen(found)).toBe(true)
  })

  it.each<readonly [string, unknown]>([
    ['no number', Number.NaN],
    ['no finite number', Infinity],
    ['a function', () => 1],
    ['a large integer', 1n],
    ['a hole', frozen(Object.assign([], { length: 1 }))],
    ['nothing in a list', frozen([undefined])],
  ])('is refused where it carries %s, though it is frozen', (_name, data) => {
    expect(() => kept(data)).toThrow('cannot be stored')
  })

  it('is the event itself also where a caller froze it with a getter: then the caller decides what it reads', () => {
    let reads = 0
    const [found, isSame] = kept(
      frozen({
        get count() {
          return ++reads
        },
      }),
    )
    expect(isSame).toBe(true)
    expect(() => Object.assign(found as object, { count: 0 })).toThrow(TypeError)
  })

  it('is known again after a lost acknowledgement, whatever the order of its fields', async () => {
    const ledger = memoryLedger()
    const [first] = stampFacts(run, [start]) as readonly [RuntimeEvent]
    const again = Object.fromEntries(Object.entries(first).toReversed()) as unknown as RuntimeEvent
    const append = (event: RuntimeEvent): Promise<unknown> =>
      ledger.append(run, { expectedSeq: 0, epoch: 1 }, [event], { durability: 'lazy' })
    await append(first)
    expect(await append(again)).toEqual({ seq: 1, epoch: 1 })
    await expect(append({ ...first, at: first.at + 1 })).rejects.toMatchObject({ kind: 'seq' })
  })
})
