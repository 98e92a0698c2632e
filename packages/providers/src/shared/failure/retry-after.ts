/** Just enough of `Headers`. */
export interface HeaderReader {
  get(name: string): string | null
}

/**
 * Returns how long a provider asks to wait, in whole milliseconds: `retry-after-ms`, else `retry-after` in seconds or
 * as a date, which is relative to `now`. `undefined` for a wait that is not positive, or that cannot be read.
 */
export function retryAfterMs(headers: HeaderReader, now: number): number | undefined {
  const asked = millisecondsAsked(headers, now)
  return asked !== undefined && Number.isFinite(asked) && asked > 0 ? Math.ceil(asked) : undefined
}

function millisecondsAsked(headers: HeaderReader, now: number): number | undefined {
  const exact = headers.get('retry-after-ms')?.trim()
  if (exact && isDecimal(exact)) return Number(exact)
  const asked = headers.get('retry-after')?.trim()
  if (!asked) return undefined
  if (isDecimal(asked)) return Number(asked) * 1000
  // A date names its month. Engines read dates into other texts too, such as a negative number.
  return /[a-z]{3}/i.test(asked) ? Date.parse(asked) - now : undefined
}

function isDecimal(text: string): boolean {
  return /^\d+(\.\d+)?$/.test(text)
}
