import {
  formatAlike,
  type CallStory,
  haveEndedAlike,
  formatOutline,
  formatSimilar,
} from '../src/runs/run-story.ts'
import { describe, expect, it } from 'vitest'

const call = (more: object = {}): CallStory =>
  ({
    ...{ toolCallId: 'call_1', name: 'look', turn: 1, attempt: 1, requested: {}, requestedSeq: 1 },
    ...{ outcome: 'success', content: [{ type: 'text', text: '5 left' }] },
    ...more,
  }) as unknown as CallStory
const said = (text: string) => ({ content: [{ type: 'text', text }] })
const open = { outcome: undefined, content: undefined }

describe('calls of one tool on one line', () => {
  it('are their number, how they ended, and what differs in their inputs', () => {
    const asked = (query: string, limit = 5) => call({ requested: { query, limit }, ...said('[]') })
    expect(formatSimilar([asked('a'), asked('b'), asked('a')])).toBe('look × 3; all empty; query: "a", "b"')
    expect(formatSimilar([asked('a', 1), asked('b', 2)])).toBe(
      'look × 2; all empty; query: "a", "b"; limit: 1, 2',
    )
    expect(formatSimilar([asked('a'), asked('a')])).toBe('look × 2; all empty; always with the same input')
    expect(formatSimilar([])).toBe('')
  })

  it('are one call without its input', () => {
    expect(formatSimilar([call()])).toBe('look; success')
    expect(formatSimilar([call(open)])).toBe('look; 1 open')
    expect(formatSimilar([call({ outcome: 'failed' })])).toBe('look; failed')
  })

  it('are counted by their endings where these differ', () => {
    const calls = [call(), call(open), call({ outcome: 'failed' }), call(), call(said(''))]
    expect(formatSimilar(calls)).toBe(
      'look × 5; 2 success, 1 failed, 1 empty, 1 open; always with the same input',
    )
    expect(formatSimilar([call(open), call(open)])).toBe('look × 2; 2 open; always with the same input')
  })

  it.each(['', ' ', '[]', ' []\n', '{}', 'null', '""'])('are empty where a success said %j', (text) => {
    expect(formatSimilar([call(said(text))])).toBe('look; empty')
    expect(formatSimilar([call({ outcome: 'failed', ...said(text) })])).toBe('look; failed')
  })

  it('show five values of a key and three keys, and count the rest', () => {
    const values = (count: number) =>
      formatSimilar(Array.from({ length: count }, (_, n) => call({ requested: { n } })))
    expect(values(5)).toBe('look × 5; all success; n: 0, 1, 2, 3, 4')
    expect(values(6)).toBe('look × 6; all success; n: 0, 1, 2, 3, 4, … 1 more')
    expect(values(7)).toContain('… 2 more')
    const keys = (...names: readonly string[]) =>
      formatSimilar([1, 2].map((n) => call({ requested: Object.fromEntries(names.map((key) => [key, n])) })))
    expect(keys('a', 'b', 'c')).toBe('look × 2; all success; a: 1, 2; b: 1, 2; c: 1, 2')
    expect(keys('a', 'b', 'c', 'd')).toBe('look × 2; all success; a: 1, 2; b: 1, 2; c: 1, 2; 1 more differ')
    expect(keys('a', 'b', 'c', 'd', 'e')).toContain('; 2 more differ')
  })

  it('show what is not there as nothing, and long names and values cut', () => {
    expect(formatSimilar([call(), call({ requested: { at: 'x' } })])).toBe(
      'look × 2; all success; at: nothing, "x"',
    )
    expect(formatSimilar([call(), call({ requested: { toString: 'x' } })])).toContain(
      'toString: nothing, "x"',
    )
    const long = formatSimilar([
      call({ name: 'n'.repeat(70), requested: { ['k'.repeat(70)]: 'v'.repeat(40) } }),
      call({ name: 'n'.repeat(70) }),
    ])
    expect(long).toBe(`${'n'.repeat(59)}… × 2; all success; ${'k'.repeat(59)}…: "${'v'.repeat(28)}…, nothing`)
  })

  it('are shown with what they ended with, where that is the same', () => {
    expect(formatAlike([call(), call()])).toBe(
      'look × 2; all success; always with the same input\nresult each time: 5 left',
    )
    expect(formatAlike([call(said(''))])).toBe('look; empty\nresult each time: nothing')
    expect(formatAlike([call(said('x'.repeat(50)))])).toContain(`result each time: ${'x'.repeat(39)}…`)
  })
})

describe('two calls', () => {
  it('ended alike where tool, outcome and result are the same', () => {
    expect(haveEndedAlike(call(), call({ requested: { at: 'x' } }))).toBe(true)
    for (const more of [{ name: 'weigh' }, { outcome: 'failed' }, said('6 left'), open]) {
      expect([haveEndedAlike(call(), call(more)), haveEndedAlike(call(more), call())]).toEqual([false, false])
    }
    expect(haveEndedAlike(call(open), call(open))).toBe(false)
  })
})

describe('the outline of a tool', () => {
  it('says how many more values there are at least, where no more were told apart', () => {
    const text = (count: number): string =>
      formatOutline({
        ...{ name: 'look', calls: 500, endings: [{ ending: 'success', count: 500 }] },
        inputs: [{ key: 'at', values: Array.from({ length: count }, (_, at) => `${at}`) }],
      })
    expect(text(100)).toBe('look × 500; all success; at: 0, 1, 2, 3, 4, … 95 more')
    expect(text(101)).toBe('look × 500; all success; at: 0, 1, 2, 3, 4, … at least 96 more')
  })
})
