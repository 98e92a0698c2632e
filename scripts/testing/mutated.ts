import { TallystickError } from '@tallystick/core'
import * as fc from 'fast-check'

/** Texts at which readers of JSON, of lines and of numbers stumble. */
const oddTexts: readonly string[] = [
  ...['null', 'true', '0', '-1', '1e999', '9007199254740993', '-0', '""', '[]', '{}', '[null]', '[[[[]]]]'],
  ...[
    '"__proto__"',
    '{"__proto__":1}',
    '"constructor"',
    '"\\ud800"',
    '"\\u0000"',
    '"\u2028"',
    '{"":{}}',
    '{"length":-1}',
  ],
  ...[
    '"a":1,"a":2',
    ',',
    ':',
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    '\n',
    '\r',
    '\r\n\r\n',
    '\0',
    '\ufeff',
    '%',
    '../',
    ' ',
  ],
  ...['\ud83d', 'NaN', 'undefined', '2026-13-45T99:99:99Z', '١', '\u202e', '-'.repeat(300), '['.repeat(3000)],
]

const oddBytes: readonly Uint8Array[] = [
  ...oddTexts.map((text) => new TextEncoder().encode(text)),
  // No text in UTF-8: half a character, an overlong NUL, bytes that never occur.
  ...[[0xc3], [0xc0, 0x80], [0xff, 0xfe], [0xed, 0xa0, 0x80]].map((bytes) => Uint8Array.from(bytes)),
]

/** A value of JSON as it stands in a text: a string, a number or a word. */
const jsonToken = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null/g

type Change = (bytes: Uint8Array) => Uint8Array

/** A place in some bytes, as a share of their length. */
const place = fc.noBias(fc.nat(2 ** 31 - 1)).map((value) => value / 2 ** 31)
const oddPiece = fc.constantFrom(...oddBytes)

function splice(
  bytes: Uint8Array,
  from: number,
  to: number,
  piece: Uint8Array = new Uint8Array(),
): Uint8Array {
  const end = Math.max(from, to)
  return Buffer.concat([bytes.subarray(0, from), piece, bytes.subarray(end)])
}

function insertAt(bytes: Uint8Array, at: number, piece: Uint8Array): Uint8Array {
  const index = Math.floor(at * bytes.length)
  return splice(bytes, index, index, piece)
}

/** A value of another kind, in its place: the text stays well formed, mostly. */
const otherValue = fc.tuple(place, oddPiece).map(([at, piece]): Change => (bytes) => {
  const tokens = [...Buffer.from(bytes).toString('latin1').matchAll(jsonToken)]
  const token = tokens[Math.floor(at * tokens.length)]
  return token ? splice(bytes, token.index, token.index + token[0].length, piece) : bytes
})

const flippedBit = fc.tuple(place, fc.nat(7)).map(([at, bit]): Change => (bytes) => {
  const changed = Uint8Array.from(bytes)
  const index = Math.floor(at * bytes.length)
  if (index < bytes.length) changed[index] = (changed[index] ?? 0) ^ (1 << bit)
  return changed
})

const insertion = fc.tuple(place, oddPiece).map(
  ([at, piece]): Change =>
    (bytes) =>
      insertAt(bytes, at, piece),
)

const overwriting = fc.tuple(place, oddPiece).map(([at, piece]): Change => (bytes) => {
  const changed = Uint8Array.from(bytes)
  const index = Math.floor(at * bytes.length)
  changed.set(piece.subarray(0, bytes.length - index), index)
  return changed
})

/** A piece is left out, is there twice, or comes elsewhere. */
const movedPiece = fc
  .tuple(place, fc.nat(200), fc.constantFrom('out', 'twice', 'elsewhere'), place)
  .map(([at, length, what, to]): Change => (bytes) => {
    const from = Math.floor(at * bytes.length)
    const piece = bytes.slice(from, from + length)
    const rest = what === 'twice' ? bytes : splice(bytes, from, from + length)
    return what === 'out' ? rest : insertAt(rest, to, piece)
  })

const cut = place.map(
  (at): Change =>
    (bytes) =>
      bytes.slice(0, Math.floor(at * bytes.length)),
)

const inPlace: fc.Arbitrary<Change> = fc.oneof(flippedBit, overwriting)

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 12, arbitrary: otherValue },
  { weight: 3, arbitrary: inPlace },
  { weight: 3, arbitrary: insertion },
  { weight: 3, arbitrary: movedPiece },
  { weight: 1, arbitrary: cut },
)

/** The same bytes, which a counterexample shows as a text. */
function showLegibly(bytes: Uint8Array): Uint8Array {
  const show = (): string => JSON.stringify(Buffer.from(bytes).toString('latin1').slice(0, 5_000))
  return Object.defineProperty(bytes.slice(), fc.toStringMethod, { value: show })
}

/**
 * Real bytes in which a few things are wrong: values of another kind, flipped bits, pieces that are missing, doubled, moved or
 * odd, and an early end. `keepsPlaces`: only such changes after which all else stands where it stood, as in the pages of a file.
 */
export function mutatedBytes(
  samples: readonly Uint8Array[],
  { keepsPlaces = false }: { readonly keepsPlaces?: boolean } = {},
): fc.Arbitrary<Uint8Array> {
  return fc
    .tuple(
      fc.constantFrom(...samples),
      fc.array(keepsPlaces ? inPlace : change, { minLength: 1, maxLength: 4 }),
    )
    .map(([bytes, changes]) => showLegibly(changes.reduce((changed, make) => make(changed), bytes)))
}

/** The words of JavaScript for a fault of the code itself. They say nothing to a user. */
const wordsOfFaults =
  /Cannot (?:read|set|convert|mix|access|destructure)|is not (?:a function|iterable|defined)|undefined \(|failed unexpectedly|Invalid (?:array|string|count|time|Date)|\[object Object\]|Maximum call stack|out of range|before initialization/

/** The fault of an error that a user is shown: it is none of ours, or its words are those of JavaScript. */
export function findUnclear(error: unknown): string | undefined {
  if (!(error instanceof TallystickError)) return `no error of Tallystick: ${String(error)}`
  return findUnclearWords(error.message)
}

/** The fault of a text that a user is shown. */
export function findUnclearWords(text: string): string | undefined {
  const [words] = wordsOfFaults.exec(text) ?? []
  return words === undefined && text.trim() !== '' ? undefined : `unclear words: ${text}`
}
/** The same for texts, such as arguments: what is no UTF-8 becomes the replacement character. */
export function mutatedText(samples: readonly string[]): fc.Arbitrary<string> {
  return mutatedBytes(samples.map((text) => new TextEncoder().encode(text))).map((bytes) =>
    new TextDecoder().decode(bytes),
  )
}
