import { createRequire } from 'node:module'
import type stringWidth from 'string-width'

/** The columns that a text takes on a terminal: two for wide letters and most emoji, none for marks over letters. */
export function measureText(text: string): number {
  if (plain.test(text)) return text.length
  loaded ??= (createRequire(import.meta.url)('string-width') as { default: typeof stringWidth }).default
  // The text holds no escape sequences: they are written out as visible text.
  return loaded(text, { countAnsiEscapeCodes: true })
}

/**
 * A text in which each character takes one column: letters of the Latin, Greek and Cyrillic alphabets, and the punctuation,
 * arrows, mathematical signs and lines that views are made of.
 */
const plain =
  /^[ -~\u{a0}-\u{ac}\u{ae}-\u{2ff}\u{370}-\u{482}\u{2010}-\u{2027}\u{2030}-\u{205e}\u{2190}-\u{2319}\u{2500}-\u{259f}]*$/u

/** The tables of Unicode, loaded for the first text that needs them: that takes as long as listing a thousand runs. */
let loaded: typeof stringWidth | undefined

/** Splits a text into letters, each with its marks. */
const letters = new Intl.Segmenter()

/** The beginning of a text that fits into so many columns, with a sign where more of it follows. Letters stay whole. */
export function fitText(text: string, columns: number): string {
  if (measureText(text) <= columns) return text
  let [kept, width] = ['', 0]
  for (const { segment } of letters.segment(text)) {
    const wide = measureText(segment)
    if (width + wide > columns - 1) break
    kept += segment
    width += wide
  }
  return `${kept}…`
}

/** Returns a text with spaces after it, so that it takes so many columns. */
export function padText(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - measureText(text)))
}

/**
 * A text in which no line takes more than so many columns: what is longer continues in the next line, indented a little
 * further than the line.
 */
export function wrapText(text: string, columns: number): string {
  return text
    .split('\n')
    .flatMap((line) => wrapLine(line, columns))
    .join('\n')
}

function wrapLine(line: string, columns: number): readonly string[] {
  if (measureText(line) <= columns) return [line]
  const begun = line.length - line.trimStart().length
  const indent = ' '.repeat(Math.min(begun + 2, Math.floor(columns / 2)))
  const rows: string[] = []
  let [row, width] = ['', 0]
  for (const { segment } of letters.segment(line)) {
    const wide = measureText(segment)
    if (width + wide > columns) {
      rows.push(row)
      ;[row, width] = [indent, indent.length]
    }
    row += segment
    width += wide
  }
  return [...rows, row]
}

/** Parts of emoji: the selector after a sign, the joiner between two signs, the selector of a keycap. */
const ofEmoji =
  /(?<=\p{Extended_Pictographic})\uFE0F|(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)\u200D(?=\p{Extended_Pictographic})|(?<=[#*\d])\uFE0F(?=\u20E3)/u

/** Characters that a terminal obeys, hides, or reorders text by, instead of showing them. Line feed and tab are text. */
const unseen = /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\uFFF9-\uFFFB]/u

/** Marks that follow so many others over one letter that they are drawn over the lines above and below. */
const piledUp = /(?<=\p{Mn}{8})\p{Mn}/u

const found = new RegExp(`(?<ofEmoji>${ofEmoji.source})|${unseen.source}|${piledUp.source}`, 'gu')

/**
 * Returns text from outside as a terminal can show it. Control characters (C0, DEL, C1), line and paragraph separators,
 * bidirectional controls, zero-width, tag and other characters without a shape, and halves of surrogate pairs are
 * written as in JSON, such as `\u001b`. A carriage return in front of a line feed is left out. JSON stays JSON of the
 * same value, since only its strings can hold such characters.
 */
export function makeVisible(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(found, (character, kept: string | undefined) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    return kept ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })
}
