/** A moment in milliseconds since 1970 UTC, as people and programs read it. */
export function timeText(at: number): string {
  return new Date(at).toISOString()
}
