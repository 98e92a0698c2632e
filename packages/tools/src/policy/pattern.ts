/**
 * Whether a text fits a pattern, in which `*` stands for any text. Takes time in proportion to the text, for each `*` of
 * the pattern.
 */
function fitsPattern(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let from = first.length
  for (const piece of others) {
    const place = text.indexOf(piece, from)
    if (place < 0) return false
    from = place + piece.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

/** Whether a text fits one of the patterns. */
export function fitsAny(patterns: string | readonly string[], text: string): boolean {
  return typeof patterns === 'string'
    ? fitsPattern(patterns, text)
    : patterns.some((pattern) => fitsPattern(pattern, text))
}
