import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RunState, RuntimeEvent } from '@tallystick/core'
import { advance, audit, auditAll, decide, eventOf, evolve, RunFold } from '@tallystick/core/machine'
import { given, sampleRunId } from '@tallystick/core/testing'
import type { Signal } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { requireWellFormed, stretchesOf } from '@tallystick/core/store-kit'
import { durabilityOf } from '../src/machine/durability.ts'
import { eventsIn, keptOf } from '../src/memory-ledger/kept-event.ts'
import { Mailbox } from '../src/runtime/drive/mailbox.ts'
import { joinedEvents, withoutFollowers } from '../src/machine/stretches.ts'
import { isPlainDelta, modelSignalSchema } from '../src/vocabulary/signals/signal-schema.ts'
import { begun, called, runId } from './pages.ts'
import { play, program } from './program.ts'

const numRuns = tries(200)
const epoch = 1

/** What a model reports while it writes: deltas of few parts, most of them beside others of the same part. */
const report: fc.Arbitrary<Signal> = fc
  .record({
    type: fc.constantFrom('model_text', 'model_text', 'model_reasoning', 'model_tool_input'),
    part: fc.constantFrom(0, 0, 0, 1, 2),
    text: fc.constantFrom('', 'a', 'bc ', 'ü', '語', '😀'),
    name: fc.constantFrom('look', 'see'),
    replaces: fc.constantFrom(undefined, undefined, undefined, true as const),
    turn: fc.constantFrom(1, 1, 1, 1, 1, 1, 2),
    attempt: fc.constantFrom(1, 1, 1, 1, 1, 1, 2),
  })
  .map(({ replaces, name, ...rest }) => ({
    ...rest,
    ...(rest.type === 'model_tool_input' ? { name } : replaces && { replaces }),
  })) as fc.Arbitrary<Signal>

/** Splits a list at these places. */
function splitAt<T>(items: readonly T[], places: readonly number[]): readonly (readonly T[])[] {
  const ends = [...new Set(places.map((place) => place % (items.length + 1))), items.length].toSorted(
    (a, b) => a - b,
  )
  return ends.map((end, index) => items.slice(ends[index - 1] ?? 0, end))
}

/** What a mailbox holds of reports, as a model call posts them. */
function arrived(reports: readonly Signal[]) {
  const mailbox = new Mailbox()
  for (const signal of reports) {
    if (isPlainDelta(signal) && signal.text !== '') mailbox.postDelta(signal, signal)
    else mailbox.post({ message: signal })
  }
  return mailbox.takeBatch().map(({ message }) => message)
}

/** The events that follow from reports, and the state after them, with each decided, recorded and folded alone. */
function oneByOne(before: RunState, reports: readonly Signal[], at: number) {
  let state = before
  const events: RuntimeEvent[] = []
  for (const signal of reports) {
    const decision = decide(state, signal, { at, random: 0 })
    for (const fact of 'facts' in decision ? decision.facts : []) {
      const event = eventOf(fact, { runId, epoch, seq: state.seq + 1, at, cause: signal.type })
      state = audit(state, event)
      events.push(event)
    }
  }
  return { events, state }
}

describe('neighbouring deltas of a reply', () => {
  it('are decided and folded at once as they would be one by one, however they are split', () => {
    const before = given([...begun(), called()]).state as RunState
    fc.assert(
      fc.property(
        fc.array(report, { maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        (reports, places) => {
          const { at } = before
          const expected = oneByOne(before, reports, at)
          let state = before
          const events = splitAt(reports, places).flatMap((batch) => {
            const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }) }
            const made = advance(state, batch, options)
            expect(made.refusals).toEqual(batch.map(() => undefined))
            state = made.state
            return made.events
          })
          expect(events).toStrictEqual(expected.events)
          expect(state).toStrictEqual(expected.state)
        },
      ),
      { numRuns },
    )
  })

  it('are decided and folded as they would be one by one where they share a mail', () => {
    const before = given([...begun(), called()]).state as RunState
    const { at } = before
    fc.assert(
      fc.property(fc.array(report, { maxLength: 40 }), fc.boolean(), (reports, draining) => {
        const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }), draining }
        const made = advance(before, arrived(reports), options)
        const expected = reports.reduce(
          (sum, signal) => {
            const next = advance(sum.state, [signal], options)
            return { state: next.state, events: [...sum.events, ...next.events] }
          },
          { state: before, events: [] as readonly RuntimeEvent[] },
        )
        expect(made.events).toStrictEqual(expected.events)
        expect(made.state).toStrictEqual(expected.state)
      }),
      { numRuns },
    )
  })

  it('are known as a stretch only where they differ in their number and text alone, and as long as their list is as it was made', () => {
    const before = given([...begun(), called()]).state as RunState
    const { at } = before
    fc.assert(
      fc.property(
        fc.array(report, { maxLength: 40 }),
        fc.boolean(),
        fc.boolean(),
        (reports, draining, isMail) => {
          const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }), draining }
          const { events } = advance(before, isMail ? arrived(reports) : reports, options)
          const stretches = stretchesOf(events)
          const followers = new Set<RuntimeEvent>()
          for (const { from, to, texts } of stretches) {
            const [first, ...others] = events.slice(from, to) as [RuntimeEvent, ...RuntimeEvent[]]
            expect(first).toMatchObject({ text: texts[0] })
            expect(texts).toHaveLength(to - from)
            for (const [index, event] of others.entries()) {
              expect(Object.isFrozen(event)).toBe(true)
              expect(event).toStrictEqual({ ...first, seq: first.seq + index + 1, text: texts[index + 1] })
              expect(Object.keys(event)).toEqual(Object.keys(first))
              followers.add(event)
            }
          }
          expect(withoutFollowers(events)).toEqual(events.filter((event) => !followers.has(event)))
          expect(stretchesOf([...events])).toEqual([])
        },
      ),
      { numRuns },
    )
  })

  it('are a stretch no more once their list has changed', () => {
    const before = given([...begun(), called()]).state as RunState
    const { at } = before
    const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }) }
    const deltas = ['a', 'b', 'c'].map((text): Signal => {
      return { type: 'model_text', part: 0, text, turn: 1, attempt: 1 }
    })
    const changes: readonly ((list: RuntimeEvent[]) => unknown)[] = [
      (list) => (list[1] = { ...(list[1] as RuntimeEvent) }),
      (list) => list.pop(),
      (list) => list.push(list[0] as RuntimeEvent),
      (list) => list.reverse(),
    ]
    for (const change of changes) {
      const list = advance(before, deltas, options).events as RuntimeEvent[]
      expect(stretchesOf(list)).toHaveLength(1)
      expect(withoutFollowers(list)).toEqual([list[0]])
      const asMade = [...list]
      change(list)
      expect(stretchesOf(list)).toEqual([])
      expect(withoutFollowers(list)).toBe(list)
      list.splice(0, Infinity, ...asMade)
      expect(stretchesOf(list)).toEqual([])
    }
  })

  it('of every run fold to the same states at once and one by one, however the run is split', async () => {
    await fc.assert(
      fc.asyncProperty(program, fc.array(fc.nat(), { maxLength: 8 }), async (random, places) => {
        const { events, others } = await play(random)
        for (const run of [events, ...others]) {
          let [alone, joined]: (RunState | undefined)[] = []
          const fold = new RunFold()
          let folded: RunState | undefined
          for (const part of splitAt(run, places)) {
            alone = part.reduce<RunState | undefined>(audit, alone)
            joined = auditAll(part, joined)
            expect(joined).toStrictEqual(alone)
            for (const event of part) fold.add(event)
            folded = part.reduce<RunState | undefined>(evolve, folded)
            expect(fold.state).toStrictEqual(folded)
          }
        }
      }),
      { numRuns: tries(100) },
    )
  })

  it('of which some lost their content fold to the same state at once and one by one', () => {
    const state = given([...begun(), called()]).state as RunState
    const { at } = state
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }), (removals) => {
        const events = removals.map((isRemoved, index) => {
          const base = { type: 'assistant_text_delta', turn: 1, attempt: 1, part: 0, text: 'a' } as const
          const event = eventOf(base, { runId, epoch, seq: state.seq + 1 + index, at, cause: 'model_text' })
          return isRemoved ? { ...event, removed: { at, why: 'erased' } } : event
        }) as unknown as readonly RuntimeEvent[]
        expect(auditAll(events, state)).toStrictEqual(events.reduce<RunState>(audit, state))
      }),
    )
  })

  it('that break a law are refused at once as they are one by one', () => {
    const state = given([...begun(), called()]).state as RunState
    const { at } = state
    const base = { type: 'assistant_text_delta', turn: 1, attempt: 1, part: 0, text: 'a' } as const
    const made = [1, 2, 3].map((more) =>
      eventOf(base, { runId, epoch, seq: state.seq + more, at, cause: 'model_text' }),
    )
    const wrong = fc.constantFrom<Partial<RuntimeEvent>>(
      { seq: 99 },
      { at: at - 1 },
      { epoch: 0 },
      { turn: 2 },
      { v: 99 },
      { attempt: 2 } as Partial<RuntimeEvent>,
      { runId: '00000000-0000-7000-8000-000000000000' as RuntimeEvent['runId'] },
    )
    fc.assert(
      fc.property(fc.nat({ max: 2 }), wrong, (place, fault) => {
        const events = made.with(place, { ...(made[place] as RuntimeEvent), ...fault } as RuntimeEvent)
        const messageOf = (fold: () => unknown): string => {
          try {
            fold()
          } catch (error) {
            return String(error)
          }
          return 'nothing is wrong'
        }
        const expected = messageOf(() => events.reduce<RunState | undefined>(audit, state))
        expect(expected).not.toBe('nothing is wrong')
        expect(messageOf(() => auditAll(events, state))).toBe(expected)
      }),
    )
  })

  it('are taken without the schema only where the schema takes them', () => {
    const odd = fc.constantFrom(
      undefined,
      null,
      0,
      -0,
      -1,
      1,
      0.5,
      Number.NaN,
      2 ** 60,
      '',
      'a',
      true,
      {},
      [],
    )
    const anything = fc.record(
      {
        type: fc.oneof(
          fc.constantFrom('model_text', 'model_reasoning', 'model_tool_input', 'model_usage'),
          odd,
        ),
        part: odd,
        text: odd,
        name: odd,
        replaces: odd,
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.oneof(anything, report, odd), (signal) => {
        expect(!isPlainDelta(signal) || modelSignalSchema().safeParse(signal).success).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    expect(isPlainDelta({ type: 'model_text', part: 0, text: 'a' })).toBe(true)
  })
})

it('two batches as one list have the stretches of both', () => {
  const before = given([...begun(), called()]).state as RunState
  const options = { writer: { runId, epoch }, stamp: () => ({ at: before.at, random: 0 }) }
  const some = fc.array(report, { maxLength: 12 })
  fc.assert(
    fc.property(some, some, (reports, more) => {
      const first = advance(before, reports, options)
      const second = advance(first.state, more, options)
      const joined = joinedEvents(first.events, second.events)
      expect(joined).toStrictEqual([...first.events, ...second.events])
      const said = (events: readonly RuntimeEvent[]) =>
        stretchesOf(events).map(({ from, to, texts }) => [events.slice(from, to), texts])
      expect(said(joined)).toEqual([...said(first.events), ...said(second.events)])
    }),
    { numRuns },
  )
})

describe('an append of deltas that are known as a stretch', () => {
  const before = given([...begun(), called()]).state as RunState
  const { at, seq } = before
  const options = { writer: { runId, epoch }, stamp: () => ({ at, random: 0 }) }
  const batch = fc
    .array(report, { minLength: 1, maxLength: 40 })
    .map((reports) => advance(before, arrived(reports), options).events)

  it('is refused for what the same events are refused for', () => {
    const expected = fc.record({
      expectedSeq: fc.constantFrom(seq, seq, seq - 1, seq + 1),
      epoch: fc.constantFrom(epoch, epoch, epoch + 1),
    })
    const other = fc.constantFrom(runId, runId, sampleRunId(2))
    fc.assert(
      fc.property(batch, expected, other, (events, head, run) => {
        const refusalOf = (list: readonly RuntimeEvent[]): string | undefined => {
          try {
            requireWellFormed(run, head, list)
            return undefined
          } catch (error) {
            return String(error)
          }
        }
        expect(refusalOf(events)).toBe(refusalOf([...events]))
      }),
      { numRuns },
    )
  })

  it('is as durable, and kept in memory as the same events are', () => {
    fc.assert(
      fc.property(batch, (events) => {
        expect([...eventsIn(keptOf(events))]).toStrictEqual([...eventsIn(keptOf([...events]))])
        expect(durabilityOf(events, {})).toBe(durabilityOf([...events], {}))
      }),
      { numRuns },
    )
  })
})

it('deltas of which one is missing are refused, folded at once or one by one', () => {
  const before = given([...begun(), called()]).state as RunState
  const text = ['a', 'b', 'c'].map((delta): Signal => {
    return { type: 'model_text', part: 0, text: delta, turn: 1, attempt: 1 }
  })
  const { events } = oneByOne(before, text, before.at)
  expect(events.filter(({ type }) => type === 'assistant_text_delta')).toHaveLength(3)
  const gapped = events.toSpliced(-2, 1)
  expect(() => auditAll(gapped, before)).toThrow('seq')
  const fold = new RunFold(before)
  expect(() => {
    for (const event of gapped) fold.add(event)
  }).toThrow('seq')
})
