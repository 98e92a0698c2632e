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

/** At most `maxCharacters` UTF-16 units of a text, with a mark where it was cut; never half of a surrogate pair. */
export function boundedText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const mark = ' … (cut)'
  const kept = text.slice(0, Math.max(0, maxCharacters - mark.length))
  return kept.replace(/[\ud800-\udbff]$/, '') + mark
}

/**
 * Lower-case letters that are another form of a lower-case letter, with that letter: `ς` is the `σ` at the end of a word.
 * With them `toLowerCase` becomes what Unicode calls simple case folding.
 */
const forms: ReadonlyMap<string, string> = new Map([
  ['µ', 'μ'],
  ['ſ', 's'],
  ['\u0345', 'ι'],
  ['\u0390', '\u1fd3'],
  ['\u03b0', '\u1fe3'],
  ['ς', 'σ'],
  ['ϐ', 'β'],
  ['ϑ', 'θ'],
  ['ϕ', 'φ'],
  ['ϖ', 'π'],
  ['ϰ', 'κ'],
  ['ϱ', 'ρ'],
  ['ϵ', 'ε'],
  ['ᲀ', 'в'],
  ['ᲁ', 'д'],
  ['ᲂ', 'о'],
  ['ᲃ', 'с'],
  ['ᲄ', 'т'],
  ['ᲅ', 'т'],
  ['ᲆ', 'ъ'],
  ['ᲇ', 'ѣ'],
  ['ᲈ', 'ꙋ'],
  ['ẛ', 'ṡ'],
  ['\u1fbe', 'ι'],
  ['\ufb05', '\ufb06'],
])

const anyForm = /[\u0345µſ\u0390\u03b0ςϐϑϕϖϰϱϵᲀ-ᲈẛ\u1fbe\ufb05]/g

/**
 * A text without its case. What is found in it is at the same place in the text: of all letters, `İ` alone would become two,
 * and is folded as `I` is.
 */
export function foldCase(text: string): string {
  return text
    .replaceAll('İ', 'i')
    .toLowerCase()
    .replaceAll(anyForm, (form) => forms.get(form) ?? form)
}
