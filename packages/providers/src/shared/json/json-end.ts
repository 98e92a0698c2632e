const [quote, backslash, openingBrace, closingBrace, openingBracket, closingBracket] = [
  ...[0x22, 0x5c, 0x7b, 0x7d],
  ...[0x5b, 0x5d],
]
const [space, colon, comma] = [0x20, 0x3a, 0x2c]

/** What is nested deeper is left to `JSON.parse`. */
const maxDepth = 16
const none = -1

/**
 * Where the JSON object ends that begins at a place of a text; -1 where none does, where it holds a field of a name, a name with an
 * escape, or white space other than spaces, and where it is nested deeper than any delta is.
 */
export function endOfObjectWithout(field: string, text: string, at: number): number {
  return endOfObject(text, at, 0, `"${field}"`)
}

function endOfObject(text: string, from: number, depth: number, refused?: string): number {
  if (text.charCodeAt(from) !== openingBrace || depth > maxDepth) return none
  let at = afterSpaces(text, from + 1)
  if (text.charCodeAt(at) === closingBrace) return at + 1
  for (;;) {
    if (refused !== undefined && text.startsWith(refused, at)) return none
    at = afterSpaces(text, endOfName(text, at))
    if (at === none || text.charCodeAt(at) !== colon) return none
    at = afterSpaces(text, endOfValue(text, afterSpaces(text, at + 1), depth))
    if (at === none) return none
    const code = text.charCodeAt(at)
    if (code === closingBrace) return at + 1
    if (code !== comma) return none
    at = afterSpaces(text, at + 1)
  }
}

function endOfList(text: string, from: number, depth: number): number {
  if (depth > maxDepth) return none
  let at = afterSpaces(text, from + 1)
  if (text.charCodeAt(at) === closingBracket) return at + 1
  for (;;) {
    at = afterSpaces(text, endOfValue(text, at, depth))
    if (at === none) return none
    const code = text.charCodeAt(at)
    if (code === closingBracket) return at + 1
    if (code !== comma) return none
    at = afterSpaces(text, at + 1)
  }
}

const plainValue = /true|false|null|-?(?:0|[1-9]\d{0,20})(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?/y

function endOfValue(text: string, at: number, depth: number): number {
  const code = text.charCodeAt(at)
  if (code === quote) return endOfText(text, at)
  if (code === openingBrace) return endOfObject(text, at, depth + 1)
  if (code === openingBracket) return endOfList(text, at, depth + 1)
  plainValue.lastIndex = at
  return plainValue.test(text) ? plainValue.lastIndex : none
}

const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y

/** Where the JSON text ends that begins at a place, with its quotes; -1 where none does. */
export function endOfText(text: string, from: number): number {
  if (text.charCodeAt(from) !== quote) return none

  for (let at = from + 1; ; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    // Past the end of the text there is no code.
    if (!(code >= space)) return none
    if (code !== backslash) continue
    escape.lastIndex = at
    if (!escape.test(text)) return none
    at = escape.lastIndex - 1
  }
}

function endOfName(text: string, from: number): number {
  if (text.charCodeAt(from) !== quote) return none
  for (let at = from + 1; ; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (!(code >= space) || code === backslash) return none
  }
}

function afterSpaces(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) === space) at++
  return at
}

/** Where a match ends that begins at a place; -1 where none does. */
export function endOfMatch(sticky: RegExp, text: string, from: number): number {
  sticky.lastIndex = from
  return sticky.test(text) ? sticky.lastIndex : -1
}
