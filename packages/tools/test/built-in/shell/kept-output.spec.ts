// What is kept of the output of a program: whole characters of its beginning and of its end.
import { describe, expect, it } from 'vitest'
import { keepOutput } from '../../../src/built-in/run-program.ts'

/** What is kept of pieces that are written one after the other. */
function kept(maxBytes: number, pieces: readonly (string | Uint8Array)[], shownBytes?: number) {
  const output = keepOutput(maxBytes)
  for (const piece of pieces) output.write(Buffer.from(piece))
  return { text: output.text(shownBytes), written: output.written, omitted: output.omitted }
}

describe('the output of a program', () => {
  it.each([
    ['é', 2],
    ['€', 3],
    ['\u0800', 3],
    ['😀', 4],
    ['a', 1],
  ])('of %j is cut between characters, wherever that falls', (character, length) => {
    const whole = character.repeat(40)
    for (let maxBytes = 8; maxBytes < 40; maxBytes++) {
      const [head, tail] = [Math.ceil(maxBytes / 2), Math.floor(maxBytes / 2)].map((bytes) =>
        character.repeat(Math.floor(bytes / length)),
      ) as [string, string]
      const cut = 40 * length - Buffer.byteLength(head + tail)
      expect(kept(maxBytes, [whole]).text).toBe(`${head}\n… (${cut} bytes are left out) …\n${tail}`)
    }
  })

  it('is whole where it fits, and else shown as far as is asked for', () => {
    expect(kept(10, ['01234', '56789'])).toEqual({ text: '0123456789', written: 10, omitted: 0 })
    expect(kept(10, ['01234', '567890'])).toEqual({
      ...{ text: '01234\n… (1 bytes are left out) …\n67890', written: 11, omitted: 1 },
    })
    expect(kept(10, ['0123456789'], 10).text).toBe('0123456789')
    expect(kept(10, ['0123456789'], 4).text).toBe('01\n… (6 bytes are left out) …\n89')
    expect(kept(10, ['0123456789'], 9).text).toBe('01234\n… (0 bytes are left out) …\n56789')
    expect(kept(10, ['0123456789ab'], 4).text).toBe('01\n… (8 bytes are left out) …\nab')
    expect(kept(10, ['0123456789ab'], 99).text).toBe('01234\n… (2 bytes are left out) …\n789ab')
    expect(kept(3, ['0123456789']).text).toBe('01\n… (7 bytes are left out) …\n9')
    expect(kept(10, [])).toEqual({ text: '', written: 0, omitted: 0 })
  })

  it('keeps bytes that are no text as they come', () => {
    const odd = Uint8Array.from([0x80, 0x80, 0x80, 0x80, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff])
    expect(kept(8, [odd]).text).toBe('����\n… (2 bytes are left out) …\n����')
    // A byte that begins a character is left out with its end, and three bytes at most that end one.
    expect(kept(8, [odd.toReversed()]).text).toBe('���\n… (6 bytes are left out) …\n�')
    expect(kept(2, ['é', 'abc']).text).toBe('\n… (4 bytes are left out) …\nc')
  })

  it('is the same in pieces of any size, also in many', () => {
    const whole = Array.from({ length: 9_000 }, (_, at) => String(at % 10)).join('')
    const once = kept(100, [whole])
    expect(kept(100, whole.split(''))).toEqual(once)
    expect(once).toMatchObject({ written: 9_000, omitted: 8_900 })
    const large = 'x'.repeat(70_000)
    expect(kept(100, [large, large, 'end'])).toEqual(kept(100, [`${large}${large}end`]))
  })
})
