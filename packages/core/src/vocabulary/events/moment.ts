/** The first millisecond of the year 0000 and the last of 9999, since 1970 UTC: dates that ISO 8601 writes alike. */
const FIRST_MOMENT = -62_167_219_200_000
export const LAST_MOMENT = 253_402_300_799_999

/**
 * Whether a number is a moment: whole milliseconds since 1970 UTC, within the years that every reader of a ledger can
 * write as a date.
 */
export function isMoment(at: unknown): at is number {
  return Number.isSafeInteger(at) && (at as number) >= FIRST_MOMENT && (at as number) <= LAST_MOMENT
}

/** The moment some milliseconds after another, rounded up; a wait that goes past the last moment ends there. */
export function momentAfter(at: number, ms: number): number {
  return Math.min(at + Math.ceil(ms), LAST_MOMENT)
}
