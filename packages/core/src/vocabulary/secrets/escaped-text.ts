const entities: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
  ['lt', '<'],
  ['gt', '>'],
])

/** Characters that the longest escape of one character takes: `&#x00002f;`. */
export const maxEscapeLength = 10

const escapes: Readonly<Record<string, RegExp>> = {
  '%': /%(?<hex>[0-9a-f]{2})/iy,
  '\\': /\\(?:u(?<unicode>[0-9a-f]{4})|x(?<hex>[0-9a-f]{2})|(?<plain>["'\\/]))/iy,
  '&': /&(?:#x(?<hex>[0-9a-f]{1,6})|#(?<decimal>\d{1,7})|(?<entity>amp|quot|apos|lt|gt));/iy,
}

/** A line break within a value that was too long for a line, as it is or as JSON writes it. */
const lineBreak = /(?:\r?\n|(?:\\r)?\\n)[ \t]?/y

/**
 * Returns the place after `words` in a text, if the text has them at `from`; else `undefined`. `words` are in small
 * letters. Each of their characters may be written as it is, in capitals, or escaped as in URLs, JSON, JavaScript or
 * HTML, and lines may break between two of them. Every reading is tried: a `%` or a `\` before the words hides none.
 */
export function endOfWords(words: string, text: string, from: number): number | undefined {
  let places: readonly number[] = [from]
  for (let index = 0; index < words.length && places.length > 0; index++) {
    const word = words[index] ?? ''
    const next = places.flatMap((place) => {
      const behind = endsOfCharacter(word, text, place)
      return index === 0 ? behind : [...behind, ...endsOfCharacter(word, text, behindLineBreak(text, place))]
    })
    places = next.length > 1 ? [...new Set(next)] : next
  }
  return places.length === 0 ? undefined : Math.max(...places)
}

/** Returns whether a character can be at an index: cheap, and never wrong when `false`. */
export function mayBeAt(character: string, text: string, place: number): boolean {
  const found = text[place] ?? ''
  return inSmallLetters(found) === character || found in escapes
}

/** Letters of ASCII in small letters; all others stay, so that no character moves. */
export function inSmallLetters(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function endsOfCharacter(character: string, text: string, place: number): readonly number[] {
  const found = text[place]
  if (found === undefined) return []
  const ends = inSmallLetters(found) === character ? [place + 1] : []
  const pattern = escapes[found]
  if (pattern === undefined) return ends
  pattern.lastIndex = place
  const match = pattern.exec(text)
  const escaped = match?.groups && inSmallLetters(unescaped(match.groups))
  return match && escaped === character ? [...ends, place + match[0].length] : ends
}

function behindLineBreak(text: string, place: number): number {
  const found = text[place]
  if (found !== '\r' && found !== '\n' && found !== '\\') return text.length
  lineBreak.lastIndex = place
  return lineBreak.test(text) ? lineBreak.lastIndex : text.length
}

function unescaped({ hex, unicode, decimal, plain, entity }: Readonly<Record<string, string>>): string {
  if (plain !== undefined) return plain
  if (entity !== undefined) return entities.get(entity.toLowerCase()) ?? ''
  const code = decimal === undefined ? Number.parseInt(unicode ?? hex ?? '', 16) : Number(decimal)
  return code <= 0xffff ? String.fromCharCode(code) : ''
}
