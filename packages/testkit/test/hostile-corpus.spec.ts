import { describe, expect, it } from 'vitest'
import {
  hostileFiles,
  hostileStreams,
  hostileTexts,
  cutOtherwise,
  createRepeatedTexts,
} from '@tallystick/testkit'

function twice(names: readonly string[]): readonly string[] {
  return names.filter((name, index) => names.indexOf(name) !== index)
}

function joined(chunks: readonly Uint8Array[]): readonly number[] {
  return chunks.flatMap((chunk) => [...chunk])
}

describe('the corpus of hostile texts, files and streams', () => {
  it('gives each a name of its own, by which a failed test tells which it was', () => {
    expect(twice(hostileTexts.map(({ border, name }) => `${border}: ${name}`))).toEqual([])
    expect(twice(hostileFiles.map(({ name }) => name))).toEqual([])
    expect(twice(hostileStreams.map(({ name }) => name))).toEqual([])
    expect(twice(createRepeatedTexts(8).map(({ name }) => name))).toEqual([])
  })

  it('holds every control character, and every control of the direction of text', () => {
    const all = hostileTexts.map(({ text }) => text).join('')
    const controls = [0x00, 0x07, 0x08, 0x0b, 0x0c, 0x0d, 0x0e, 0x1b, 0x7f, 0x85, 0x90, 0x9b, 0x9d, 0x9f]
    const directions = [0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2069]
    for (const code of [...controls, ...directions]) expect(all).toContain(String.fromCharCode(code))
  })

  it('makes repeated texts as long as they are asked for', () => {
    const lengths = createRepeatedTexts(1_000).map(({ text }) => text.length)
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(1_000)
    expect(Math.max(...lengths)).toBeLessThan(1_000 + 40)
  })

  it('cuts bytes into other pieces, and loses none', () => {
    const bytes = Uint8Array.from('a piece of text that is cut', (letter) => letter.charCodeAt(0))
    for (const { chunks } of cutOtherwise(bytes)) expect(joined(chunks)).toEqual([...bytes])
  })
})
