/**
 * Returns a moment in milliseconds since 1970 UTC as people and programs read it. A store that was written by hand may
 * hold a number that is no date: it is returned as it is.
 */
export function timeText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}
