/** Code points that no output may hold, from and to: what a terminal obeys, hides, or reorders text by. */
const ranges: readonly (readonly [number, number])[] = [
  ...([
    [0x00, 0x08],
    [0x0b, 0x1f],
    [0x7f, 0x9f],
    [0xad, 0xad],
    [0x34f, 0x34f],
    [0x61c, 0x61c],
    [0x115f, 0x1160],
  ] as const),
  ...([
    [0x17b4, 0x17b5],
    [0x180b, 0x180f],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0x2800, 0x2800],
  ] as const),
  ...([
    [0x3164, 0x3164],
    [0xd800, 0xdfff],
    [0xfe00, 0xfe0f],
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
    [0xfff0, 0xfffb],
    [0xe0000, 0xe0fff],
  ] as const),
]

/** Finds the characters in an output that would do something to a terminal, as `U+001B`. */
export function rawCharacters(output: string): readonly string[] {
  return Array.from(output, (character) => character.codePointAt(0) ?? 0)
    .filter((point) => ranges.some(([from, to]) => point >= from && point <= to))
    .map((point) => `U+${point.toString(16).toUpperCase().padStart(4, '0')}`)
}
