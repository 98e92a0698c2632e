/** How an emoji is drawn: the selector after its sign, the joiner between two signs, the selector of a keycap. */
const ofEmoji =
  /(?<=\p{Extended_Pictographic})\uFE0F|(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)\u200D(?=\p{Extended_Pictographic})|(?<=[#*\d])\uFE0F(?=\u20E3)/u

/** What a terminal obeys, hides, or reorders text by, rather than shows. Line feed and tab are text. */
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
export function visibleText(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(found, (character, kept: string | undefined) => kept ?? escaped(character))
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
