import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { callsOf } from './kit/collect.ts'
import { foldChat } from './kit/openai-fold.ts'
import { finish, piece, role } from './kit/openai-streams.ts'

const inputs = fc.dictionary(
  fc.constantFrom('x', 'y', 'z'),
  fc.oneof(fc.integer(), fc.string(), fc.constant({})),
  {
    minKeys: 1,
  },
)
const calls = fc.array(
  fc.record({ name: fc.constantFrom('a', 'b', 'pay'), input: inputs, cuts: fc.array(fc.nat(40)) }),
  {
    minLength: 1,
    maxLength: 3,
  },
)
/** How a server tells of its calls. */
const ways = fc.record({
  id: fc.constantFrom('of the call', 'of the piece', 'none', 'null'),
  index: fc.constantFrom('of the call', 'always 0', 'none'),
  name: fc.constantFrom('at first', 'with each piece', 'at first, then empty'),
  head: fc.boolean(),
})

type Ways = typeof ways extends fc.Arbitrary<infer Value> ? Value : never
type Call = typeof calls extends fc.Arbitrary<(infer Value)[]> ? Value : never

function piecesOf(call: Call, at: number, { id, index, name, head }: Ways): object[] {
  const text = JSON.stringify(call.input)
  const borders = [...new Set([0, ...call.cuts.filter((cut) => cut < text.length), text.length])].sort(
    (a, b) => a - b,
  )
  const texts = borders.slice(1).map((border, place) => text.slice(borders[place], border))
  const all = head ? ['', ...texts] : texts
  return all.map((given, place) => {
    const isFirst = place === 0
    const called =
      isFirst || name === 'with each piece' ? { name: call.name } : name === 'at first' ? {} : { name: '' }
    const ids = { 'of the call': `c${at}`, 'of the piece': `c${at}-${place}`, none: undefined, null: 'null' }
    const own = ids[id]
    return piece({
      ...(index !== 'none' && { index: index === 'always 0' ? 0 : at }),
      ...(own !== undefined && { id: own }),
      function: { ...called, arguments: given },
    })
  })
}

const read = (asked: readonly Call[], told: Ways) =>
  callsOf(
    foldChat([role, ...asked.flatMap((call, at) => piecesOf(call, at, told)), finish('tool_calls')]).signals,
  )

describe('calls of a chat, however a server tells of them', () => {
  it('are those that the model made, where index or id or both part them', () => {
    fc.assert(
      fc.property(calls, ways, (asked, told) => {
        fc.pre(told.index === 'of the call' || (told.id === 'of the call' && told.name !== 'with each piece'))
        expect(read(asked, told).map(({ name, input }) => [name, input])).toEqual(
          asked.map(({ name, input }) => [name, input]),
        )
      }),
      { numRuns: tries(300) },
    )
  })

  it('never run with an input that the model did not write', () => {
    fc.assert(
      fc.property(calls, ways, (asked, told) => {
        const written = asked.map(({ name, input }) => JSON.stringify([name, input]))
        for (const { name, input, malformed } of read(asked, told)) {
          if (malformed !== undefined) continue
          const place = written.indexOf(JSON.stringify([name, input]))
          expect(place).not.toBe(-1)
          written.splice(place, 1)
        }
      }),
      { numRuns: tries(300) },
    )
  })
})
