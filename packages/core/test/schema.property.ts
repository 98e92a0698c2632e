import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { callEventTypes, findEventShapeFault } from '@tallystick/core/internal'
import { type EventType, eventTypes } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { outsideCommand } from '../src/events/commands.ts'
import { eventBodies } from '../src/events/event.ts'
import { envelopeFields } from '../src/events/event-parts.ts'
import { modelSignalSchema, repairedInputSchema, toolSignalSchema } from '../src/events/signals.ts'
import { eventSchemas } from '../src/schemas.ts'
import { toolCallId as callId } from '../src/events/content.ts'
import { count, maybe, objectOf, text, withShape } from '../src/values/schema.ts'

const envelopeSchema = withShape(envelopeFields)
const callEnvelopeSchema = withShape({ toolCallId: callId })

const runId = sampleRunId(1)
const events = stampFacts(runId, Object.values(sampleFacts(runId)))
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

/** Whether a value holds an object of a class, or one that zod passes over: `__proto__`. */
function isOdd(value: unknown): boolean {
  return holdersIn(value).some((holder) => {
    const prototype: unknown = Object.getPrototypeOf(holder)
    const isPlain = [Object.prototype, Array.prototype, null].includes(prototype as never)
    return !isPlain || Object.hasOwn(holder, '__proto__')
  })
}

describe('a schema', () => {
  it('takes what the schema of zod that is made from it takes, and nothing else', () => {
    const taken = { yes: 0, no: 0 }
    fc.assert(
      fc.property(changedEvent, ({ type, value }) => {
        fc.pre(!isOdd(value))
        const isSound = eventBodies[type](value) === undefined
        expect([type, isSound]).toEqual([type, eventSchemas[type].safeParse(value).success])
        taken[isSound ? 'yes' : 'no']++
      }),
      { numRuns: tries(20_000) },
    )
    expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(100)
  })

  it('refuses an optional field that is undefined, of zod too', () => {
    const asked = events.find(({ type }) => type === 'approval_requested')
    const value = { ...asked, expiresAt: undefined }
    expect(eventBodies.approval_requested(value)).toMatchObject({ path: 'expiresAt' })
    expect(eventSchemas.approval_requested.safeParse(value).success).toBe(false)
  })

  it.each(eventTypes)('takes %s with all that it may carry', (type: EventType) => {
    const event = events.find((each) => each.type === type)
    expect(envelopeSchema(event)).toBeUndefined()
    expect(eventBodies[type](event)).toBeUndefined()
  })

  it('tells a field that is missing from one that is undefined, and sees inherited ones', () => {
    const schema = objectOf<{ readonly a: string; readonly b?: number }>({ a: text, b: maybe(count) })
    const values = [{ a: '' }, { a: '', b: undefined }, { a: undefined }, {}, Object.create({ a: '', b: 1 })]
    expect(values.map((value) => schema(value) === undefined)).toEqual([true, false, false, false, true])
    class Got {
      get a(): string {
        return 'by a getter'
      }
    }
    expect(schema(new Got())).toBeUndefined()
  })

  it('of what models and tools report takes fields of other names only where JSON can carry them', () => {
    const call = { type: 'tool_call', providerCallId: 'c', name: 'look', input: { at: 1 } }
    const parts = [
      { part: 0, type: 'text', text: 'a' },
      { part: 1, ...call },
    ]
    const finished = { type: 'model_finished', stopReason: 'end', parts }
    const ofPart = (part: unknown) => modelSignalSchema({ ...finished, parts: [part] })
    const ended = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'a' }] }
    expect(modelSignalSchema(finished)).toBeUndefined()
    expect(modelSignalSchema({ type: 'model_tool_request', part: 1, call })).toBeUndefined()
    expect(toolSignalSchema(ended)).toBeUndefined()
    expect(ofPart({ ...parts[0], more: { deep: [1] } })).toBeUndefined()
    expect(ofPart({ ...parts[0], more: () => 1 })).toEqual({
      path: 'parts',
      what: 'is a list; expected a JSON value',
    })
    expect(ofPart({ ...parts[0], part: -1 })?.path).toBe('parts[0].part')
    expect(ofPart({ ...parts[0], type: 'other' })?.path).toBe('parts[0].type')
    expect(toolSignalSchema({ ...ended, content: [{ ...ended.content[0], more: 1n }] })?.path).toBe('content')
  })

  it('takes a decision of a person who is named, and a repair of which a word is said', () => {
    const approved = (by: unknown) => outsideCommand({ type: 'approve', toolCallId: 'c', by }) === undefined
    expect([approved('mara'), approved(' m')]).toEqual([true, true])
    for (const by of ['', ' \n', 7, undefined]) expect(approved(by)).toBe(false)
    const repaired = (repairs: unknown) => repairedInputSchema({ input: { at: 1 }, repairs }) === undefined
    expect(repaired(['a comma'])).toBe(true)
    for (const repairs of [[], [1], ['a comma', 1], 'a', undefined]) expect(repaired(repairs)).toBe(false)
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
        const due = schemas.every((schema) => schema(value) === undefined)
        const event = value as unknown as (typeof events)[number]
        expect([type, findEventShapeFault(event) === undefined]).toEqual([type, due])
        taken[due ? 'yes' : 'no']++
      }),
      { numRuns: tries(5_000) },
    )
    expect(Math.min(taken.yes, taken.no)).toBeGreaterThan(100)
  })

  it('still names its call where its type always does', () => {
    for (const event of events) {
      const { toolCallId: _gone, ...nameless } = event
      const fault = findEventShapeFault(nameless as typeof event)?.path
      const isOfCall = (callEventTypes as readonly string[]).includes(event.type)
      expect([event.type, fault]).toEqual([event.type, isOfCall ? 'toolCallId' : undefined])
    }
    expect(events.map(({ type }) => type).toSorted()).toEqual(eventTypes.toSorted())
  })
})
