import { isDeepStrictEqual } from 'node:util'
import type { RuntimeEvent } from '@tallystick/core'
import { eventTypes } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import '../../../scripts/testing/seed.ts'
import { compareValues, selectDifferences, isSignificant, normalizeEvent } from '../src/diff.ts'

describe('differencesOf', () => {
  it('names every place in which two values differ, with what each has there', () => {
    const recorded = { type: 'x', content: [{ text: 'a' }, { text: 'b' }], gone: 1 }
    const happened = { type: 'x', content: [{ text: 'a' }, { text: 'c' }, 'more'], come: null }
    expect(compareValues(recorded, happened)).toEqual([
      { path: 'content[1].text', recorded: 'b', happened: 'c' },
      { path: 'content[2]', recorded: undefined, happened: 'more' },
      { path: 'gone', recorded: 1, happened: undefined },
      { path: 'come', recorded: undefined, happened: null },
    ])
    expect(compareValues('a', { b: 1 })).toEqual([{ path: '(all)', recorded: 'a', happened: { b: 1 } }])
  })

  it('compares what has names by them, so that one that goes away moves none of the others', () => {
    const [look, weigh, pay] = ['look', 'weigh', 'pay'].map((name) => ({ name, effect: 'read' }))
    expect(
      compareValues({ tools: [look, weigh, pay] }, { tools: [look, { ...pay, effect: 'write' }] }),
    ).toEqual([
      { path: 'tools[weigh]', recorded: weigh, happened: undefined },
      { path: 'tools[pay].effect', recorded: 'read', happened: 'write' },
    ])
    expect(compareValues([look, pay], [pay, look], 'tools')).toEqual([
      { path: 'tools, in order', recorded: ['look', 'pay'], happened: ['pay', 'look'] },
    ])
    // Two of one name cannot be told apart by it.
    expect(compareValues([look, look], [look], 'calls')).toEqual([
      { path: 'calls[1]', recorded: look, happened: undefined },
    ])
    expect(compareValues([look], [look, look], 'calls')).toEqual([
      { path: 'calls[1]', recorded: undefined, happened: look },
    ])
    expect(compareValues([{ name: 1, of: 'a' }], [{ name: 1, of: 'b' }], 'calls')).toEqual([
      { path: 'calls[0].of', recorded: 'a', happened: 'b' },
    ])
  })

  it('finds something where two JSON values differ, and nothing where they do not', () => {
    const value = fc.jsonValue({ noUnicodeString: false })
    const named = fc.array(fc.record({ name: fc.constantFrom('a', 'b', 'c'), of: value }), { maxLength: 4 })
    for (const side of [value, named]) {
      fc.assert(
        fc.property(side, side, (one, two) => {
          expect(compareValues(one, two).length === 0).toBe(isDeepStrictEqual(one, two))
          expect(compareValues(one, structuredClone(one))).toEqual([])
        }),
      )
    }
  })
})

describe('selectDifferences', () => {
  it('leaves out digests beside what they are digests of, and lines that are the same', () => {
    const text = (...lines: string[]): string => ['Buy.', ...lines, 'Say so.'].join('\n')
    const reported = selectDifferences([
      { path: 'definition.digest', recorded: 'a', happened: 'b' },
      { path: 'requestDigest', recorded: 'a', happened: 'b' },
      {
        path: 'definition.instructions',
        recorded: text('Pay.', 'Pay.'),
        happened: text('Pay.', 'Sit.', 'Pay.'),
      },
      { path: 'text', recorded: 'one', happened: 'one\ntwo' },
      { path: 'digestible', recorded: 1, happened: 2 },
    ])
    expect(reported).toEqual([
      { path: 'definition.instructions, from line 3', recorded: undefined, happened: 'Sit.' },
      { path: 'text, from line 2', recorded: undefined, happened: 'two' },
      { path: 'digestible', recorded: 1, happened: 2 },
    ])
    const digest = { path: 'requestDigest', recorded: 'a', happened: 'b' }
    expect(selectDifferences([digest])).toEqual([digest])
  })

  it.each([
    // A line that is added beside equal lines is shown once.
    ['a\nx\nb', 'a\nx\nx\nb', 3, undefined, 'x'],
    ['a\nx\nx\nb', 'a\nx\nb', 3, 'x', undefined],
    ['a\nb\nc', 'a\nc', 2, 'b', undefined],
    ['a\nb', 'a', 2, 'b', undefined],
    ['a', 'a\nb', 2, undefined, 'b'],
    ['a\nb', 'c\nd', 1, 'a\nb', 'c\nd'],
    ['a\nb\nc\nd', 'a\nx\ny\nd', 2, 'b\nc', 'x\ny'],
    ['b\na', 'a', 1, 'b', undefined],
    ['', 'a\n', 1, undefined, 'a'],
  ])('shows of %j and %j what is between the first and the last change', (recorded, happened, ...shown) => {
    const [line, before, after] = shown
    expect(selectDifferences([{ path: 'text', recorded, happened }])).toEqual([
      { path: `text, from line ${line}`, recorded: before, happened: after },
    ])
  })

  it('shows whole what is one line in both, or no text in one of them', () => {
    const whole = [
      { path: 'a', recorded: 'one', happened: 'two' },
      { path: 'b', recorded: 'one\ntwo', happened: undefined },
      { path: 'c', recorded: 7, happened: 'one\ntwo' },
    ]
    expect(selectDifferences(whole)).toEqual(whole)
  })
})

const event = (fields: object): RuntimeEvent => fields as RuntimeEvent
const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** What two tries at one task have each for itself. */
const ofOneRun = words(`
  cause inboxKey draining places runId seq epoch at parent sessionId sessionPlace durationMs expiresAt deadlineAt
  retryAt idempotencyKey receipt child reused costUsd usage contextTokens tokensBefore tokensAfter`)
/** The same, at any depth. */
const ofOneRunAnywhere = words(`
  digest requestDigest inputDigest price providerMessageId providerCallId requestId opaque raw recorded`)

describe('an event, as another run of the same task may say it', () => {
  it.each([...ofOneRun, ...ofOneRunAnywhere])('says nothing of %s', (key) => {
    expect(normalizeEvent(event({ type: 'tool_result', [key]: 1, name: 'look' }))).toEqual({
      ...{ type: 'tool_result', name: 'look' },
    })
  })

  it('leaves out within a value what names a reply or a digest, and nothing else', () => {
    for (const key of ofOneRunAnywhere) {
      const within = { content: [{ [key]: 1, text: 'a' }] }
      expect(normalizeEvent(event(within))).toEqual({ content: [{ text: 'a' }] })
    }
    for (const key of ofOneRun) {
      const within = { data: {}, content: [{ [key]: 1 }] }
      expect(normalizeEvent(event(within))).toEqual(within)
    }
  })

  it.each(['input', 'inputSchema', 'output', 'schema', 'data'])(
    'keeps all that a model or a tool wrote: %s',
    (key) => {
      const written = { price: 5, digest: 'd', opaque: [{ raw: null }], id: sampleCallId(sampleRunId(1)) }
      expect(normalizeEvent(event({ [key]: written }))).toEqual({ [key]: written })
      expect(normalizeEvent(event({ calls: [{ [key]: written }] }))).toEqual({ calls: [{ [key]: written }] })
    },
  )

  it('names calls by their places, in whatever run', () => {
    const [one, other] = [1, 2].map((run) => sampleCallId(sampleRunId(run), 3))
    expect(normalizeEvent(event({ toolCallId: one, ids: [other, 'call'] }))).toEqual({
      ...{ toolCallId: 'call 1_1_3', ids: ['call 1_1_3', 'call'] },
    })
  })

  it('keeps what is null', () => {
    expect(normalizeEvent(event({ a: null, c: [true, 1] }))).toEqual({ a: null, c: [true, 1] })
  })

  it('of a take-over is the definition that it brings', () => {
    const definition = { instructions: 'Help.', digest: 'd' }
    expect(normalizeEvent(event({ type: 'run_resumed', why: 'crash', definition }))).toEqual({
      definition: { instructions: 'Help.' },
    })
  })

  it('matters, but for a report of usage or progress, the beginning of a reply, feedback, and a take-over that changes nothing', () => {
    const runId = sampleRunId(1)
    const { run_resumed: resumed, ...facts } = sampleFacts(runId)
    const { definition: _same, ...plain } = resumed
    const significant = stampFacts(runId, [...Object.values(facts), resumed, plain]).filter(isSignificant)
    const silent: readonly string[] = [
      'assistant_started',
      'usage_updated',
      'tool_progress',
      'feedback_given',
    ]
    const types = eventTypes.filter((type) => !silent.includes(type))
    expect(significant.map(({ type }) => type).toSorted()).toEqual(types.toSorted())
  })
})
