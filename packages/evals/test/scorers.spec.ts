import type { RunResult } from '@tallystick/core'
import type { Json } from '@tallystick/core/vocabulary'
import {
  contains,
  exact,
  regex,
  schema,
  type Score,
  type ScoredRun,
  type Scorer,
  toolCalls,
} from '@tallystick/evals'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { readScore } from '../src/scorers.ts'

type Calls = ScoredRun['calls']
const call = (tool: string, input: object = {}): Calls[number] => ({ tool, input: input as never })

function runOf(
  text: string,
  more: { expected?: Json; output?: Json; calls?: Calls; recorded?: Calls } = {},
): ScoredRun {
  const { expected, output = text, calls = [], recorded } = more
  return {
    case: {
      ...{ id: 'a', input: 'Hi.' },
      ...(expected !== undefined && { expected }),
      ...(recorded && {
        calls: recorded.map((each) => ({ ...each, outcome: 'success' as const, content: '' })),
      }),
    },
    ...{ agent: 'today', result: {} as RunResult, text, output, calls, events: [] },
    evaluation: { name: 'x', run: () => Promise.reject(new Error('nothing runs here')) },
  }
}

const scored = async (scorer: Scorer, run: ScoredRun): Promise<number> => readScore(await scorer(run)).score

describe('a scorer', () => {
  it.each<[string, Scorer, ScoredRun, number]>([
    ['the same text', exact(), runOf('Four. ', { expected: 'Four.' }), 1],
    ['another text', exact(), runOf('four.', { expected: 'Four.' }), 0],
    ['another case', exact({ ignoreCase: true }), runOf('four.', { expected: 'Four.' }), 1],
    ['the same JSON', exact(), runOf('', { output: { b: 1, a: [2] }, expected: { a: [2], b: 1 } }), 1],
    ['other JSON', exact(), runOf('', { output: { a: 1 }, expected: { a: 2 } }), 0],
    ['a part', contains(), runOf('It is four.', { expected: 'FOUR' }), 1],
    ['half of the parts', contains('four', 'five'), runOf('It is four.'), 0.5],
    ['a pattern', regex(/\bfour\b/gi), runOf('It is Four.'), 1],
    ['no pattern', regex(/^four/), runOf('It is four.'), 0],
    ['a schema', schema(z.object({ n: z.number() })), runOf('', { output: { n: 4 } }), 1],
    ['a JSON Schema', schema({ type: 'object', required: ['n'] }), runOf('', { output: {} }), 0],
    ['JSON in a text', schema(z.object({ n: z.number() })), runOf('{"n":4}'), 1],
    ['no JSON in a text', schema(z.object({ n: z.number() })), runOf('four'), 0],
    ['a text by a schema', schema(z.string().max(9)), runOf('four'), 1],
  ])('tells %s', async (_what, scorer, run, score) => {
    expect(await scored(scorer, run)).toBe(score)
    // A pattern that remembers its place would say otherwise the second time.
    expect(await scored(scorer, run)).toBe(score)
  })

  it.each<[string, Scorer, Calls, Calls, number]>([
    ['the same calls', toolCalls(), [call('a', { x: 1 }), call('b')], [call('a', { x: 1 }), call('b')], 1],
    ['no calls', toolCalls(), [], [], 1],
    ['another order', toolCalls(), [call('b'), call('a')], [call('a'), call('b')], 0.5],
    ['any order', toolCalls({ order: 'any_order' }), [call('b'), call('a')], [call('a'), call('b')], 1],
    [
      'any order, some with any input',
      toolCalls({ order: 'any_order', expected: [{ tool: 'a' }, { tool: 'a', input: { x: 1 } }] }),
      [call('a', { x: 1 }), call('a', { x: 2 })],
      [],
      1,
    ],
    ['one call more', toolCalls(), [call('a'), call('c'), call('b')], [call('a'), call('b')], 2 / 3],
    [
      'calls among others',
      toolCalls({ order: 'includes' }),
      [call('a'), call('c'), call('b')],
      [call('a'), call('b')],
      1,
    ],
    ['other inputs', toolCalls(), [call('a', { x: 1 })], [call('a', { x: 2 })], 0],
    ['names alone', toolCalls({ inputs: false }), [call('a', { x: 1 })], [call('a', { x: 2 })], 1],
    ['calls that it names', toolCalls({ expected: [{ tool: 'a' }] }), [call('a', { x: 1 })], [], 1],
    ['a call for none', toolCalls({ expected: [] }), [call('a')], [], 0],
  ])('compares calls: %s', async (_what, scorer, calls, recorded, score) => {
    expect(await scored(scorer, runOf('', { calls, recorded }))).toBeCloseTo(score)
  })

  it('says that it cannot compare', () => {
    expect(() => exact()(runOf('x'))).toThrow('Case a has no expected answer')
    expect(() => toolCalls()(runOf('x'))).toThrow('no recorded calls')
    expect(() => contains()(runOf('x', { expected: '' }))).toThrow('expects an empty text')
  })

  it.each<[unknown, string]>([
    [Number.NaN, 'NaN'],
    [Infinity, 'Infinity'],
    [-0.1, '-0.1'],
    [1.1, '1.1'],
    ['1', 'string'],
    [null, 'null'],
    [undefined, 'undefined'],
    [{ note: 'x' }, 'undefined'],
    [{ score: 1, note: 7 }, 'a note that is not a text'],
  ])('is refused for %s', (given, said) => {
    expect(() => readScore(given as Score)).toThrow(said)
  })
})
