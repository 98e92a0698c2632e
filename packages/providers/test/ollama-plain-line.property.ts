import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hostileTexts } from '@tallystick/core/testing'
import { tries } from '../../../scripts/testing/effort.ts'
import { plainLineOf } from '../src/ollama/client/plain-line.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'

const written = ({ model = 'm', content = '', thinking }: Record<string, string | undefined>): string =>
  JSON.stringify({
    ...{ model, created_at: '2026-11-27T10:00:00.1Z' },
    message: { role: 'assistant', content, ...(thinking !== undefined && { thinking }) },
    done: false,
  })

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const puts = ['', '"', '\\', '{', '}', ',', ':', 'n', '\n', '\r', '\t', ' ', '\0', '\u2028', 'é']

/** A text with one character taken out, put in or replaced. */
const changed = (text: string) =>
  fc
    .tuple(fc.nat({ max: text.length }), fc.nat({ max: 1 }), fc.constantFrom(...puts))
    .map(([at, removed, put]) => text.slice(0, at) + put + text.slice(at + removed))

describe('a line of words', () => {
  it('is read as JSON.parse reads it', () => {
    expect(plainLineOf(written({ content: ' Hé \u2028\u{1f9fe}' }))).toEqual(
      JSON.parse(written({ content: ' Hé \u2028\u{1f9fe}' })),
    )
    expect(plainLineOf(written({ thinking: 'Hm' }))).toEqual(JSON.parse(written({ thinking: 'Hm' })))
    expect(plainLineOf(written({ content: 'a\nb' }))).toBeUndefined()
    expect(plainLineOf(written({ content: 'a' }).replace('a"}', 'a\n"}'))).toBeUndefined()
  })

  it.each(hostileTexts)('that holds what is $name is never read as another', ({ text }) => {
    for (const each of [written({ content: text }), written({ model: text, thinking: text }), text]) {
      expect(plainLineOf(each) ?? parsed(each)).toEqual(parsed(each))
    }
  })

  it('is never read as another, whatever it holds and wherever it is damaged', () => {
    const text = fc.string({ unit: 'binary' })
    const line = fc.record({ model: text, content: text, thinking: fc.option(text, { nil: undefined }) })
    fc.assert(
      fc.property(
        line.map(written).chain((each) => fc.oneof(fc.constant(each), changed(each))),
        (each) => {
          expect(plainLineOf(each) ?? parsed(each)).toEqual(parsed(each))
        },
      ),
      { numRuns: tries(2_000) },
    )
  })

  it('is most of what a server sends', () => {
    const lines = readingsIn('ollama').flatMap((reading) =>
      new TextDecoder().decode(bytesOf(reading)).split('\n'),
    )
    for (const each of lines) expect(plainLineOf(each) ?? parsed(each)).toEqual(parsed(each))
    expect(lines.filter((each) => plainLineOf(each) !== undefined).length).toBeGreaterThan(20)
  })
})
