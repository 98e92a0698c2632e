// What a model is shown of a result that is too long: its beginning and its end, whole characters, and every image and file.
import { describe, expect, it } from 'vitest'
import type { ResultPart } from '@tallystick/core/vocabulary'
import { shortenResult } from '../src/tools/tool-call.ts'

const text = (words: string): ResultPart => ({ type: 'text', text: words })
const image: ResultPart = { type: 'image', mediaType: 'image/png', data: 'QQ==' }
const show = (content: readonly ResultPart[], max: number | undefined, isReadable = false) =>
  shortenResult(content, { max, toolCallId: 'call_1' as never, isReadable })
const note = (count: number, length: number, from: number): string =>
  `\n[${count} of ${length} characters are left out here, from ${from} to ${from + count}. Ask for a smaller part if you need them.]\n`

describe('a result that is shown to a model', () => {
  it('is the same where its texts are short enough, or have no limit', () => {
    for (const content of [[], [image], [text('12345678')], [text('1234'), image, text('5678')]]) {
      expect(show(content, 8)).toBe(content)
      expect(show(content, undefined)).toBe(content)
    }
  })

  it('has three quarters of its characters from the beginning, and the rest from the end', () => {
    expect(show([text('123456789')], 8)).toEqual([text(`123456${note(1, 9, 6)}89`)])
    expect(show([text('123456789')], 5)).toEqual([text(`123${note(4, 9, 3)}89`)])
    expect(show([text('123456789')], 1)).toEqual([text(`${note(8, 9, 0)}9`)])
    expect(show([text('123456789')], 0)).toEqual([text(note(9, 9, 0))])
  })

  it('says how to read on where the agent has a tool for that', () => {
    expect(show([text('123456789')], 8, true)).toEqual([
      text(
        '123456\n[1 of 9 characters are left out here, from 6 to 7. Read on with read_result: {"call":"call_1","from":6}.]\n89',
      ),
    ])
  })

  it('keeps images and files, and names what is left out once, over several texts', () => {
    const content = [text('abcd'), image, text('efgh'), image, text('ijkl'), text('mnop')]
    expect(show(content, 8)).toEqual([
      ...[text('abcd'), image, text(`ef${note(8, 16, 6)}`), image],
      text('op'),
    ])
    expect(show([text('abcd'), text('efgh'), text('ijkl')], 5)).toEqual([
      ...[text(`abc${note(7, 12, 3)}`), text('kl')],
    ])
    expect(show([text('abc'), text('defg'), text('hi')], 4)).toEqual([
      ...[text('abc'), text(note(5, 9, 3)), text('i')],
    ])
  })

  it('cuts no character in two', () => {
    // Each of them is two units long.
    expect(show([text('💡💡💡💡')], 4)).toEqual([text(`💡${note(4, 8, 2)}💡`)])
    expect(show([text('a💡💡💡')], 4)).toEqual([text(`a💡${note(2, 7, 3)}💡`)])
    expect(show([text('💡bcdefg')], 2)).toEqual([text(`${note(6, 8, 0)}fg`)])
    expect(show([text('abcde💡')], 4)).toEqual([text(`abc${note(2, 7, 3)}💡`)])
    expect(show([text('a'), text('💡💡💡')], 4)).toEqual([...[text('a'), text(`💡${note(2, 7, 3)}💡`)]])
  })
})
