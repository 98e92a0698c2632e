import { deepStrictEqual } from 'node:assert'
import { randomBytes } from 'node:crypto'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { RuntimeEvent } from '@tallystick/core'
import type { Json } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyText } from '../../../scripts/testing/any-text.ts'
import { tries } from '../../../scripts/testing/effort.ts'
import { decodeEvent, encodeEvent, type Decoding } from '../src/format/body.ts'
import { genesisHash } from '../src/format/chain.ts'
import { genesis, linkEvents, readEvent, type EventRow, type NewRow } from '../src/format/event-row.ts'
import { Sealer } from '../src/format/keyring.ts'

const runId = sampleRunId(1)
const sealer = new Sealer({ id: 'k1', bytes: randomBytes(32) })
const decoding: Decoding = { sealers: new Map([['k1', sealer]]), hasKeys: true, history: () => [] }

const key = fc.oneof(
  fc.string(),
  fc.constantFrom('__proto__', 'length', '0', 'constructor', 'carried', 'sealed'),
)
const anyJson = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    anyText(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value

/** Events that say anything, also in fields that no release knows. */
const anyEvent = fc.record({ data: anyJson, more: anyJson }).map(({ data, more }): RuntimeEvent => {
  const [event] = stampFacts(runId, [{ ...sampleFacts(runId).tool_progress, data }])
  return { ...event, sealed: more, carried: more } as unknown as RuntimeEvent
})

const rowOf = (event: RuntimeEvent, by?: Sealer): EventRow => {
  const [row] = linkEvents(genesisHash, [encodeEvent(event, by)]) as [NewRow]
  return { ...row, pos: 1, commitment: null }
}

describe('the row of any event', () => {
  it('is read as it was written, plain and sealed, and the same event gives the same body', () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        for (const by of [undefined, sealer]) {
          const row = rowOf(event, by)
          // An own field may be called `constructor`, which `toStrictEqual` would take for the class.
          deepStrictEqual(readEvent(genesis, { ...row, decoding }), event)
          expect(rowOf(event, by).body).toBe(row.body)
          expect(row.body.isWellFormed()).toBe(true)
          expect(row.body).not.toContain('\0')
        }
      }),
      { numRuns: tries(150) },
    )
  })

  it('is refused, whichever character of its body, its salt or its hash changes', () => {
    const changes = fc.record({
      event: anyEvent,
      column: fc.constantFrom('body' as const, 'salt' as const, 'hash' as const),
      at: fc.nat(),
      to: fc.constantFrom('x', '0', '"', '}'),
      isSealed: fc.boolean(),
    })
    fc.assert(
      fc.property(changes, ({ event, column, at, to, isSealed }) => {
        const row = rowOf(event, isSealed ? sealer : undefined)
        const text = row[column] as string
        const place = at % text.length
        const changed = text.slice(0, place) + to + text.slice(place + 1)
        if (changed === text) return
        expect(() => readEvent(genesis, { ...row, [column]: changed, decoding })).toThrow(
          'is damaged at seq 1',
        )
      }),
      { numRuns: tries(300) },
    )
  })

  it('does not open when any character of what is sealed changes', () => {
    fc.assert(
      fc.property(anyEvent, fc.nat(), (event, at) => {
        const row = rowOf(event, sealer)
        const { sealed, ...rest } = JSON.parse(row.body) as { readonly sealed: string }
        const place = at % (sealed.length - 2)
        const other = sealed[place] === 'A' ? 'B' : 'A'
        const body = JSON.stringify({
          ...rest,
          sealed: sealed.slice(0, place) + other + sealed.slice(place + 1),
        })
        expect(() => decodeEvent({ ...row, body }, decoding)).toThrow('unable to authenticate data')
      }),
      { numRuns: tries(100) },
    )
  })
})
