/**
 * A moment in milliseconds since 1970 UTC, as people and programs read it. A store that somebody wrote by hand may hold a
 * number that is no date: it is shown as it is.
 */
export function timeText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}
