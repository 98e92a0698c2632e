import { isJson, type Json } from './json.ts'

/**
 * Reads the beginning of a JSON text: the object or list in it, as far as it is there. Strings may be cut, lists and
 * objects may lack what comes later; numbers, `true`, `false` and `null` are there once they are whole. What follows
 * the end of the value is not read. `undefined` if the text has a fault, or is nested deeper than a ledger takes.
 */
export function readPartialJson(text: string): Json | undefined {
  /** What would close the text at `end`. */
  const closers: string[] = []
  let end = 0
  let isKeyNext = false
  let isInWord = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string
    if (isInWord && ' \n\r\t,]}'.includes(char)) {
      isInWord = false
      end = at
    }
    if (char === '"') {
      const { cut, isWhole } = scanString(text, at)
      if (!isKeyNext) end = cut
      if (!isWhole && !isKeyNext) closers.push('"')
      if (!isWhole) break
      at = cut - 1
    } else if (char === '{' || char === '[') {
      closers.push(char === '{' ? '}' : ']')
      end = at + 1
      isKeyNext = char === '{'
    } else if (char === '}' || char === ']') {
      closers.pop()
      end = at + 1
      if (closers.length === 0) break
    } else if (char === ',') isKeyNext = closers.at(-1) === '}'
    else if (char === ':') isKeyNext = false
    else isInWord ||= !' \n\r\t'.includes(char)
  }
  try {
    const value: unknown = JSON.parse(text.slice(0, end) + closers.reverse().join(''))
    return isJson(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The place behind a string, or behind its last whole character where it is cut. */
function scanString(text: string, from: number): { readonly cut: number; readonly isWhole: boolean } {
  let cut = from + 1
  for (let at = cut; at < text.length;) {
    if (text[at] === '"') return { cut: at + 1, isWhole: true }
    const isEscape = text[at] === '\\'
    // Two halves of a character, escaped or not, come one after the other.
    const isHalf = /^(?:[\uD800-\uDBFF]|\\u[dD][89abAB])/.test(text.slice(at, at + 4))
    at += !isEscape ? 1 : text[at + 1] === 'u' ? 6 : 2
    if (at <= text.length && !isHalf) cut = at
  }
  return { cut, isWhole: false }
}
