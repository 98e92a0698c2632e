import { everyFact, sampleRunId, stamped } from '@tallystick/testkit'
import { callEventTypes, shapeFaultOf } from '@tallystick/core/internal'
import { type EventType, eventTypes } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { tries } from '../../../scripts/testing/effort.ts'
import { outsideCommand } from '../src/events/commands.ts'
import { callEnvelopeSchema, envelopeSchema, eventBodies } from '../src/events/event-schema.ts'
import { modelSignalSchema, repairedInputSchema, toolSignalSchema } from '../src/events/signals.ts'
import {
  anyOf,
  discriminatedBy,
  exactly,
  lazily,
  listOf,
  objectOf,
  optional,
  quickCheckOf,
  recordOf,
  type Schema,
  text,
  whole,
} from '../src/values/schema.ts'

const runId = sampleRunId(1)
const events = stamped(runId, Object.values(everyFact(runId)))
const toolCallId = `call_${runId.replaceAll('-', '')}_1_1_1`

function made(): readonly unknown[] {
  return [
    ...[undefined, null, 0, -0, -1, 1, 0.5, Number.NaN, Infinity, -Infinity, 1n, 1e300],
    ...[2 ** 53 - 1, 2 ** 53, 253_402_300_799_999, 253_402_300_800_000, -62_167_219_200_001, 1_000_001],
    ...['', 'a', 'NaN', '1', runId, `${runId}\n`, toolCallId, `${toolCallId}_1`, true, false],
    ...['text', 'tool_call', 'user', 'tool', 'unbounded', 'success', 'toString', '__proto__'],
    ...[{}, { type: 'text', text: '' }, { runId }, [], [1], [undefined], ['a'], Array.from({ length: 2 })],
    ...[Object.create(null), Object.create({ type: 'any' }), new Date(0), new Map(), () => 1, Symbol('a')],
    ...[JSON.parse('{"__proto__":1}'), JSON.parse('{"constructor":1,"a":2}'), { [Symbol('a')]: 1 }],
  ]
}

const odd = fc.nat(made().length - 1).map((index) => made()[index])

/** Everything that holds something, with all that is in it. */
function holdersIn(value: unknown): readonly object[] {
  if (typeof value !== 'object' || value === null) return []
  return [value, ...Object.values(value).flatMap(holdersIn)]
}

type Change = (holder: object, key: string) => void

function put(holder: object, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, writable: true, configurable: true })
}

const change: fc.Arbitrary<Change> = fc.oneof(
  odd.map(
    (value): Change =>
      (holder, key) =>
        put(holder, key, value),
  ),
  fc.constant<Change>((holder, key) => void Reflect.deleteProperty(holder, key)),
  fc
    .tuple(fc.constantFrom('since', 'toString', 'text', 'a', 'replaces', 'constructor', '__proto__'), odd)
    .map(
      ([key, value]): Change =>
        (holder) =>
          put(holder, key, value),
    ),
  fc.constant<Change>((holder, key) => put(holder, key, [(holder as Record<string, unknown>)[key]])),
)

/** An event of any type with all that it may carry, changed at some places however deep. */
const changedEvent = fc
  .tuple(fc.constantFrom(...events), fc.array(fc.tuple(fc.nat(), fc.nat(), change), { maxLength: 3 }))
  .map(([event, changes]) => {
    const copy = structuredClone(event) as unknown as Record<string, unknown>
    for (const [place, index, apply] of changes) {
      const holders = holdersIn(copy)
      const holder = holders[place % holders.length] as object
      const keys = Object.keys(holder)
      apply(holder, keys[index % Math.max(keys.length, 1)] ?? 'a')
    }
    return { type: event.type, value: copy }
  })

/** What a quick check and its schema say of a value. */
function saidOf(schema: Schema<unknown>, value: unknown): readonly [quick: boolean, schema: boolean] {
  return [quickCheckOf(schema)(value), schema().safeParse(value).success]
}

/** Whether an event may hold a record that its check leaves to the schema: zod passes over what is called `__proto__`. */
function isLeft(value: unknown): boolean {
  return holdersIn(value).some((holder) => {
    const prototype: unknown = Object.getPrototypeOf(holder)
    const isPlain = [Object.prototype, Array.prototype, null].includes(prototype as never)
    return !isPlain || Object.hasOwn(holder, '__proto__')
  })
}

describe('the quick check of a schema', () => {
  it('takes what the schema takes of any event, and nothing else', () => {
    const taken = { yes: 0, no: 0 }
    fc.assert(
      fc.property(changedEvent, ({ type, value }) => {
        for (const schema of [envelopeSchema, callEnvelopeSchema, eventBodies[type]]) {
          const [quick, isValid] = saidOf(schema, value)
          const due = isLeft(value) ? quick && isValid : isValid
          expect([type, quick]).toEqual([type, due])
          taken[quick ? 'yes' : 'no']++
        }
      }),
      { numRuns: tries(20_000) },
    )
    expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(1_000)
  })

  it.each(eventTypes)('takes %s with all that it may carry, without zod', (type: EventType) => {
    const event = events.find((each) => each.type === type)
    expect(quickCheckOf(envelopeSchema)(event)).toBe(true)
    expect(quickCheckOf(eventBodies[type])(event)).toBe(true)
  })

  it('tells a field that is missing from one that is undefined, and sees inherited ones as zod does', () => {
    const schema = objectOf<{ readonly a: string; readonly b?: number }>({ a: text, b: optional(whole) })
    const values = [{ a: '' }, { a: '', b: undefined }, { a: undefined }, {}, Object.create({ a: '', b: 1 })]
    const said = values.map((value) => saidOf(schema, value))
    expect(said).toEqual([true, false, false, false, true].map((both) => [both, both]))
  })

  it('leaves a record that is no plain object, or has other names than texts, to its schema', () => {
    const schema = recordOf(whole)
    const own = (json: string): unknown => JSON.parse(json)
    expect(saidOf(schema, { a: 1, toString: 2, constructor: 3 })).toEqual([true, true])
    expect(saidOf(schema, { a: 1, b: 'no number' })).toEqual([false, false])
    expect(saidOf(schema, own('{"__proto__":1}'))).toEqual([true, true])
    expect(saidOf(schema, own('{"__proto__":"no number"}'))).toEqual([false, true])
    expect(saidOf(schema, { [Symbol('a')]: 1 })).toEqual([false, false])
    expect(saidOf(schema, new Date(0))).toEqual([false, false])
  })

  it('takes what models and tools report, and fields of other names only where JSON can carry them', () => {
    const call = { type: 'tool_call', providerCallId: 'c', name: 'look', input: { at: 1 } }
    const parts = [
      { part: 0, type: 'text', text: 'a' },
      { part: 1, ...call },
    ]
    const finished = { type: 'model_finished', stopReason: 'end', parts }
    const saidOfPart = (part: unknown) => saidOf(modelSignalSchema, { ...finished, parts: [part] })
    const ended = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'a' }] }
    const taken = [true, true]
    expect(saidOf(modelSignalSchema, finished)).toEqual(taken)
    expect(saidOf(modelSignalSchema, { type: 'model_tool_request', part: 1, call })).toEqual(taken)
    expect(saidOf(toolSignalSchema, ended)).toEqual(taken)
    expect(saidOfPart({ ...parts[0], more: { deep: [1] } })).toEqual(taken)
    const [refused, text] = [[false, false], parts[0] as object]
    expect(saidOfPart({ ...text, more: () => 1 })).toEqual(refused)
    expect(saidOfPart({ ...text, part: -1 })).toEqual(refused)
    expect(saidOfPart({ ...text, type: 'other' })).toEqual(refused)
    // What it inherits is for the schema to judge.
    expect(saidOfPart(Object.create(text))).toEqual([false, true])
    expect(saidOf(toolSignalSchema, { ...ended, content: [{ ...ended.content[0], more: 1n }] })).toEqual(
      refused,
    )
  })

  it('takes a decision of a person who is named, and a repair of which a word is said', () => {
    const approved = (by: unknown) => saidOf(outsideCommand, { type: 'approve', toolCallId: 'c', by })
    expect([approved('mara'), approved(' m')]).toEqual([
      [true, true],
      [true, true],
    ])
    for (const by of ['', ' \n', 7, undefined]) expect(approved(by)).toEqual([false, false])
    const repaired = (repairs: unknown) => saidOf(repairedInputSchema, { input: { at: 1 }, repairs })
    expect(repaired(['a comma'])).toEqual([true, true])
    for (const repairs of [[], [1], ['a comma', 1], 'a', undefined]) {
      expect(repaired(repairs)).toEqual([false, false])
    }
  })

  it('takes nothing where only zod can tell, and the others of a list of variants all the same', () => {
    const own: Schema<string> = lazily(() => z.string().regex(/^a/))
    const first = objectOf<{ readonly type: string; readonly a: string }>({ type: exactly('a'), a: own })
    const second = objectOf<{ readonly type: string; readonly a: string }>({ type: exactly('b'), a: text })
    const either = discriminatedBy<{ readonly type: string; readonly a: string }>('type', [first, second])
    expect(saidOf(listOf(own), ['a'])).toEqual([false, true])
    expect(saidOf(either, { type: 'a', a: 'a' })).toEqual([false, true])
    expect(saidOf(either, { type: 'b', a: 'b' })).toEqual([true, true])
    expect(saidOf(anyOf<string | number>(own, whole), 1)).toEqual([true, true])
    expect(saidOf(anyOf<string | number>(own, whole), 'b')).toEqual([false, false])
  })
})

describe('an event', () => {
  it('has the shape of its type where its parts have theirs, however it was changed', () => {
    const taken = { yes: 0, no: 0 }
    fc.assert(
      fc.property(changedEvent, ({ type, value }) => {
        fc.pre(value['type'] === type && value['v'] === 1 && value['removed'] === undefined)
        const isOfCall = (callEventTypes as readonly string[]).includes(type)
        const schemas = [envelopeSchema, ...(isOfCall ? [callEnvelopeSchema] : []), eventBodies[type]]
        const due = schemas.every((schema) => schema().safeParse(value).success)
        const event = value as unknown as (typeof events)[number]
        expect([type, shapeFaultOf(event) === undefined]).toEqual([type, due])
        taken[due ? 'yes' : 'no']++
      }),
      { numRuns: tries(5_000) },
    )
    expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(100)
  })

  it('still names its call where its type always does', () => {
    for (const event of events) {
      const { toolCallId: _gone, ...nameless } = event
      const fault = shapeFaultOf(nameless as typeof event)?.path
      const isOfCall = (callEventTypes as readonly string[]).includes(event.type)
      expect([event.type, fault]).toEqual([event.type, isOfCall ? 'toolCallId' : undefined])
    }
    expect(events.map(({ type }) => type).toSorted()).toEqual(eventTypes.toSorted())
  })
})
