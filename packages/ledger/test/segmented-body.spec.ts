import { sampleRunId } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { shortCallId } from '../src/record/segments/fact-number.ts'
import {
  headFrom,
  headsOf,
  isSegmentedRow,
  isGone,
  hasPlainSegments,
  hasAllSegments,
  openedBody,
  segmentLines,
  segmentedBody,
  segmentedType,
} from '../src/record/segments/segmented-body.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const textOf = (of: Uint8Array): string => Buffer.from(of).toString()
const [salt, commitment] = ['a'.repeat(32), '0'.repeat(64)]

/** A body of which segments were taken away, with what is said of each. */
const openedWith = (tail: string, ...lines: readonly string[]): Uint8Array =>
  bytes(`{"heads":["a","b"],"segments":[\n${lines.join(',\n')}\n${tail}`)

describe('a row of segments', () => {
  it('has its type, and says which event is its first', () => {
    expect(isSegmentedRow({ type: segmentedType, first_seq: 1 })).toBe(true)
    expect(isSegmentedRow({ type: segmentedType, first_seq: null })).toBe(false)
    expect(isSegmentedRow({ type: 'assistant_text_delta', first_seq: 1 })).toBe(false)
  })

  it('is written line by line, and its lines are those that are read', () => {
    const heads = [
      { type: 'usage_updated', call: '1_1_1' },
      { type: 'tool_started', v: 2 },
    ] as const
    const body = segmentedBody(heads, ['{"é":1}', '{}'], 'k"1')
    const first = '{"key":"k\\"1","heads":["usage_updated 1_1_1",{"type":"tool_started","v":2}],"segments":['
    expect(textOf(body)).toBe(`${first}\n{"é":1},\n{}\n]}`)
    const read = segmentLines(body)
    expect(read && [textOf(read.heads), ...read.segments.map(textOf)]).toEqual([first, '{"é":1}', '{}'])
    expect(read).not.toHaveProperty('opened')
    expect(headsOf(bytes(first))).toMatchObject({ key: 'k"1' })
    expect([hasAllSegments(body), hasPlainSegments(body)]).toEqual([true, false])
    expect(hasPlainSegments(segmentedBody(heads, ['{}', '{}']))).toBe(true)
  })

  it('has no heads but texts and objects, and a text is a type, and perhaps a call after it', () => {
    expect([headFrom(7), headFrom(null), headFrom(undefined), headFrom(true)]).toEqual(
      Array(4).fill(undefined),
    )
    expect(headFrom('a')).toEqual({ type: 'a' })
    expect(headFrom('a b c')).toEqual({ type: 'a', call: 'b c' })
    expect(headFrom({ type: 'a', v: 2 })).toEqual({ type: 'a', v: 2 })
    // A type with a space in it would be read as another one with a call.
    const spaced = segmentedBody([{ type: 'a b' as never }], ['{}'])
    expect(JSON.parse(textOf(spaced))).toEqual({ heads: [{ type: 'a b' }], segments: [{}] })
  })
})

describe('a row of which segments were taken away', () => {
  it('is written in one form, and read in no other', () => {
    const tail = `],"opened":["${commitment}","${salt}"]}`
    const body = openedWith(tail, 'null', '{}')
    const lines = segmentLines(body)
    expect(lines?.opened).toEqual([commitment, salt])
    expect(lines && textOf(openedBody(lines, [commitment, salt]))).toBe(textOf(body))
    expect([hasAllSegments(body), hasPlainSegments(body)]).toEqual([false, false])
    for (const other of [
      `],"opened":["${commitment}", "${salt}"]}`,
      `],"opened":["${commitment}","${salt}"],"more":1}`,
      `],"opened":["${commitment}"]}`,
      `],"opened":["${commitment}","${salt}","${salt}"]}`,
      `],"opened":["${commitment}","${commitment}"]}`,
      `],"opened":["${salt}","${salt}"]}`,
      `],"opened":["${commitment}","${salt.toUpperCase()}"]}`,
      `],"opened":["${commitment}",7]}`,
      '],"opened":{"length":2}}',
      '],"opened":"no list"}',
      '],"open":[]}',
      ']',
      '',
    ]) {
      expect([other, segmentLines(openedWith(other, 'null', '{}'))]).toEqual([other, undefined])
    }
    // Nothing is gone.
    expect(segmentLines(openedWith(`],"opened":["${salt}","${salt}"]}`, '{}', '{}'))).toBeUndefined()
    expect(segmentLines(openedWith(`],"opened":["${salt}"]}`, '{}'))).toBeUndefined()
  })

  it('has one line for one that is gone, and nothing else is it', () => {
    expect(['null', 'true', 'nul', 'null ', '"null"'].map((line) => isGone(bytes(line)))).toEqual([
      true,
      ...Array<boolean>(4).fill(false),
    ])
  })

  it('is no row without an end of its lines', () => {
    for (const text of [
      '',
      'x',
      '{"heads":[],"segments":[\n',
      '{"heads":[],"segments":[\n{},\n',
      '{"heads":[],"segments":[\n{}',
    ]) {
      expect([text, segmentLines(bytes(text))]).toEqual([text, undefined])
    }
    expect(segmentLines(bytes('\n\n]}'))).toEqual({ heads: Buffer.alloc(0), segments: [Buffer.alloc(0)] })
  })
})

describe('the short name of a call', () => {
  it('is that of a call of the run, of any turn, attempt and ordinal', () => {
    const runId = sampleRunId(1)
    const call = (short: string): string => `call_${runId.replaceAll('-', '')}_${short}`
    expect(shortCallId(runId, call('1_2_3'))).toBe('1_2_3')
    expect(shortCallId(runId, call('10_0_99999'))).toBe('10_0_99999')
    for (const other of ['1_2', '1_2_3_4', '01_2_3', '1_02_3', '1_2_', 'a_2_3', ' 1_2_3']) {
      expect([other, shortCallId(runId, call(other))]).toEqual([other, undefined])
    }
    expect(shortCallId(sampleRunId(2), call('1_2_3'))).toBeUndefined()
    expect(shortCallId(runId, '')).toBeUndefined()
  })
})
