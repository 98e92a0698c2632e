const lengthMax = 300

/**
 * A provider's own words, fit for an error message: one line, bounded, and with what looks like a key or a token struck
 * out. Provider messages end up in ledgers and logs.
 */
export function failureText(text: string): string {
  const line = text
    .replace(/\b(sk|rk|pk)-[A-Za-z0-9_-]{6,}/g, '$1-[struck out]')
    .replace(/\bBearer\s+\S+/gi, 'Bearer [struck out]')
    .replace(/\s+/g, ' ')
    .trim()
    .toWellFormed()
  return line.length <= lengthMax ? line : `${line.slice(0, lengthMax - 1).toWellFormed()}…`
}
