const escape = '\u001b'

/**
 * A text without what a terminal obeys and a reader does not see: escape sequences as a whole, other control characters,
 * marks that turn the direction of writing, the tags of Unicode. Line breaks and tabs stay; a return is a line break.
 */
export function visibleText(text: string): string {
  let visible = ''
  let from = 0
  for (let start = text.indexOf(escape); start !== -1; start = text.indexOf(escape, from)) {
    visible += text.slice(from, start)
    from = endOfSequence(text, start + 1)
  }
  const rest = visible + text.slice(from)
  return rest.replaceAll('\r\n', '\n').replaceAll('\r', '\n').replaceAll(unseen, '').toWellFormed()
}

const unseen =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** The longest text of a sequence that is taken for one: of an unended one the rest stays. */
const maxSequence = 4_096

/** The index after an escape sequence; `from` is the index after its escape character. */
function endOfSequence(text: string, from: number): number {
  const kind = text[from]
  if (kind === '[') return endOfControl(text, from + 1)
  if (kind !== undefined && ']PX^_'.includes(kind)) return endOfString(text, from + 1)
  let place = from
  while (isBetween(text[place], ' ', '/')) place++
  return isBetween(text[place], '0', '~') ? place + 1 : place
}

/** Parameters, then one character that ends them. */
function endOfControl(text: string, from: number): number {
  let place = from
  while (place - from < maxSequence && isBetween(text[place], ' ', '?')) place++
  return isBetween(text[place], '@', '~') ? place + 1 : place
}

/** Anything up to a bell or to another sequence, of which `ESC \` is one, such as the title of a window. */
function endOfString(text: string, from: number): number {
  for (let place = from; place < Math.min(text.length, from + maxSequence); place++) {
    if (text[place] === '\u0007') return place + 1
    if (text[place] === escape || text[place] === '\n') return place
  }
  return from
}

function isBetween(character: string | undefined, low: string, high: string): boolean {
  return character !== undefined && character >= low && character <= high
}
