import * as fc from 'fast-check'

/** The code points of halves of surrogate pairs, which are no characters. */
const halves = { first: 0xd800, count: 0x800 }

function characterAt(index: number): string {
  return String.fromCodePoint(index < halves.first ? index : index + halves.count)
}

function indexOf(text: unknown): number {
  const point = typeof text === 'string' ? (text.codePointAt(0) ?? halves.first) : halves.first
  const index = point < halves.first ? point : point - halves.count
  if (characterAt(index) !== text) throw new Error('This is not a character.')
  return index
}

/** Any character. The unit `binary` of fast-check is the same, and first takes a second for a table of 85 MB. */
const character = fc.nat({ max: 0x10_ffff - halves.count }).map(characterAt, indexOf)

/** Texts of any characters. */
export function anyText(
  constraints: Pick<fc.StringConstraints, 'minLength' | 'maxLength'> = {},
): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: character })
}
