// However the pieces of a reply part it: a mask shows what replacing in the whole text shows, and units are the text itself.
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { outputMask, type OutputPart, outputTransform, type OutputTransform } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'

const part: OutputPart = { runId: sampleRunId(1), agent: 'desk', turn: 1, kind: 'text', context: undefined }

function shownOf({ begin }: OutputTransform, pieces: readonly string[]): { shown: string; heldMax: number } {
  const writer = begin(part)
  let [shown, taken, heldMax] = ['', 0, 0]
  for (const piece of pieces) {
    taken += piece.length
    shown += writer.write(piece)
    heldMax = Math.max(heldMax, taken - shown.length)
  }
  return { shown: shown + writer.end(), heldMax }
}

const words = fc.constantFrom(
  '1',
  '12',
  'ab',
  '-',
  ' ',
  '. ',
  '!',
  '\n',
  '。',
  '😀',
  '\ud83d',
  '\ude00',
  'x1234y',
)
const pieces = fc.array(
  fc.array(words, { maxLength: 6 }).map((each) => each.join('')),
  { maxLength: 30 },
)

it.each([
  [/\d{2}-\d{2}/g, 5],
  [/\b12\b/g, 4],
  [/(?<=a)b/gi, 3],
  [/😀/gu, 4],
  [/^1/gm, 2],
])('a mask of %s shows what replacing in the whole text shows', (pattern, window) => {
  const mask = outputMask({ name: 'mask', pattern, window, replacement: '#' })
  fc.assert(
    fc.property(pieces, (each) => {
      expect(shownOf(mask, each).shown).toBe(each.join('').replaceAll(pattern, '#'))
    }),
    { numRuns: tries(300) },
  )
})

it.each(['piece', 'line', 'sentence', 'part'] as const)(
  'units of the kind %s, put together, are the text, each no longer than the window and without half a character',
  (unit) => {
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 12 }), (each, maxChars) => {
        const seen: string[] = []
        const transform = outputTransform({
          ...{ name: 'units', unit, maxChars },
          show: (text) => {
            seen.push(text)
            return text
          },
        })
        const text = each.join('')
        const { shown, heldMax } = shownOf(transform, each)
        expect(shown).toBe(text)
        expect(seen.every((said) => said !== '' && said.length <= Math.max(2, maxChars))).toBe(true)
        expect(heldMax).toBeLessThanOrEqual(maxChars)
        expect(!text.isWellFormed() || seen.every((said) => said.isWellFormed())).toBe(true)
      }),
      { numRuns: tries(300) },
    )
  },
)

it('a line is shown with its end as soon as that is there, an empty line too', () => {
  const seen: string[] = []
  const show = (text: string): string => {
    seen.push(text)
    return text
  }
  const writer = outputTransform({ name: 'lines', unit: 'line', show }).begin(part)
  const shown = ['\n', 'a', 'b\n\nc', '\n'].map((piece) => writer.write(piece))
  expect(shown).toEqual(['\n', '', 'ab\n\n', 'c\n'])
  expect(seen).toEqual(['\n', 'ab\n', '\n', 'c\n'])
  expect(writer.end()).toBe('')
})
