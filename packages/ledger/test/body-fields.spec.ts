import { defineAgent, type RuntimeEvent } from '@tallystick/core'
import { isFrozenOnce } from '@tallystick/core/store-kit'
import { everyFact, sampleRunId, scriptedModel, stamped } from '@tallystick/core/testing'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import { expect, it, onTestFinished, vi } from 'vitest'
import { BodyFields } from '../src/content/event/body-fields.ts'
import { storedBody } from '../src/content/event/stored-body.ts'
import { packedText } from '../src/content/event/packed-deltas.ts'
import { envelopeNames } from '../src/record/envelope.ts'

const run = sampleRunId(1)
const facts = everyFact(run)

/** An event with the fields of a body, in their order. */
function eventWith(fields: object, type: string = 'run_resumed'): RuntimeEvent {
  const [event] = stamped(run, [{ ...facts.run_resumed, ...fields }])
  return { ...(event as RuntimeEvent), type } as RuntimeEvent
}

/** The canonical text of the fields that are not in the envelope. */
function expectedText(event: RuntimeEvent): string {
  const body = Object.entries(event).filter(
    ([name]) => !envelopeNames.includes(name as never) || name === 'firstSeq',
  )
  return canonicalJson(Object.fromEntries<Json>(body))
}

it('writes every event as canonical JSON without its envelope, and again from the order that it keeps', () => {
  const fields = new BodyFields()
  for (const round of [1, 2]) {
    for (const event of stamped(run, Object.values(facts))) {
      expect([round, fields.textOf(event)]).toEqual([round, expectedText(event)])
    }
  }
})

it('writes events of one type that differ in the names of their fields, or in their order', () => {
  const fields = new BodyFields()
  const bodies: readonly object[] = [
    { zeta: 1, alpha: 2 },
    { alpha: 2, zeta: 1 },
    { zeta: 1, beta: 2 },
    { zeta: 1 },
    { zeta: undefined, alpha: 2, firstSeq: 7 },
    JSON.parse('{"__proto__":1,"alpha":"2"}') as object,
    { 'a "quoted" name': 1, alpha: { toolCallId: 'inner', at: 5 } },
  ]
  for (const body of [...bodies, ...bodies.toReversed()]) {
    const event = eventWith(body)
    expect(fields.textOf(event)).toBe(expectedText(event))
  }
})

it('writes events of one type that differ in the name of their first field alone', () => {
  const fields = new BodyFields()
  for (const name of ['alpha', 'beta', 'alpha']) {
    const event = { [name]: 1, ...eventWith({}) } as unknown as RuntimeEvent
    expect(fields.textOf(event)).toBe(expectedText(event))
  }
})

it('writes events of more types than it keeps', () => {
  const fields = new BodyFields()
  for (let ordinal = 0; ordinal < 300; ordinal++) {
    const event = eventWith({ [`field${ordinal}`]: ordinal, alpha: 1 }, `type_${ordinal % 150}`)
    expect(fields.textOf(event)).toBe(expectedText(event))
  }
})

it('puts the fields of a type in order once, of its last event: for 100 types, however many there are', () => {
  const fields = new BodyFields()
  const stringify = vi.spyOn(JSON, 'stringify')
  onTestFinished(() => stringify.mockRestore())
  const namesWritten = (name: string, type: string): number => {
    stringify.mockClear()
    fields.textOf(eventWith({ [name]: 1 }, type))
    return stringify.mock.calls.filter(([value]) => value === name).length
  }
  for (let ordinal = 0; ordinal < 100; ordinal++) {
    const type = `type_${ordinal}`
    expect([type, namesWritten('alpha', type), namesWritten('alpha', type)]).toEqual([type, 1, 0])
  }
  expect([namesWritten('alpha', 'one_more'), namesWritten('alpha', 'one_more')]).toEqual([1, 1])
  expect([namesWritten('zeta', 'type_0'), namesWritten('zeta', 'type_0')]).toEqual([1, 0])
})

it('leaves out what packed deltas do not have alike', () => {
  const deltas = stamped(run, [
    { ...facts.assistant_text_delta, text: 'a' },
    { ...facts.assistant_text_delta, text: 'b' },
  ])
  const same = new BodyFields(['text']).textOf(deltas[0] as RuntimeEvent)
  expect(JSON.parse(same)).not.toHaveProperty('text')
  expect(JSON.parse(packedText(deltas, same))).toMatchObject({ same: JSON.parse(same), text: ['a', 'b'] })
})

it('refuses what JSON cannot carry by the event and the place in it', () => {
  const event = eventWith({ alpha: 1, deep: { value: Number.NaN } })
  expect(() => storedBody(event)).toThrow(
    /Event 1 \(run_resumed\) of run .* cannot be stored: \$\.deep\.value is/,
  )
})

it('writes what an agent’s runs begin with as each of them has it, though what cannot change is written once', () => {
  const fields = new BodyFields()
  const model = scriptedModel([])
  const { limits } = defineAgent({ name: 'agent', instructions: 'Act.', model, limits: { maxTurns: 7 } })
  const retry = { ...facts.run_started.retry }
  expect([isFrozenOnce(limits), isFrozenOnce(retry)]).toEqual([true, false])
  for (const maxAttempts of [3, 4, 5]) {
    retry.maxAttempts = maxAttempts
    const [event] = stamped(run, [facts.run_started])
    const started = { ...(event as RuntimeEvent), limits, retry } as RuntimeEvent
    expect(fields.textOf(started)).toBe(expectedText(started))
    expect(fields.textOf(started)).toContain(`"maxAttempts":${maxAttempts}`)
  }
})
