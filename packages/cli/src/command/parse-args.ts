import { isJsonObject } from '@tallystick/core/kit'
import { InvalidArgumentError } from 'commander'
import type { JsonObject } from '@tallystick/core/vocabulary'

/** A word of the command line as a text that is not empty. */
export function filledText(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It may not be empty.')
  return text
}

/** A word of the command line as a whole number from 1. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It has to be a whole number from 1.')
  return Number(text)
}

/** A word of the command line as a number above 0. */
export function positiveNumber(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It has to be a number above 0.')
  return value
}

/** A word of the command line as a JSON object. */
export function jsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {
    // Not JSON at all: the message below says what it should be.
  }
  throw new InvalidArgumentError(`It has to be a JSON object, such as '{"quantity":12}'.`)
}

const msOf: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
}

/** An age such as `90d`, in milliseconds: seconds, minutes, hours, days, weeks, or years of 365 days. */
export function ageMs(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+)([smhdwy])$/.exec(text) ?? []
  const unitMs = msOf[unit]
  if (unitMs === undefined) throw new InvalidArgumentError('It has to be an age such as 12h, 90d or 2y.')
  return Number(amount) * unitMs
}

/** A moment: an age such as `3d`, so long ago, or a date such as `2026-06-30` or `2026-06-30T12:00:00Z`. */
export interface GivenMoment {
  /** As it was given, for commands that say it again. */
  readonly text: string
  /** Milliseconds ago, or milliseconds since 1970 UTC. */
  readonly agoMs?: number
  readonly at?: number
}

/** A word of the command line as a moment. */
export function moment(text: string): GivenMoment {
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isFinite(at)) return { text, at }
  if (/^\d+[smhdwy]$/.test(text)) return { text, agoMs: ageMs(text) }
  throw new InvalidArgumentError('It has to be an age such as 12h or 3d, or a date such as 2026-06-30.')
}

/** When a moment is, in milliseconds since 1970 UTC. */
export function momentAt({ at, agoMs = 0 }: GivenMoment, now: number): number {
  return at ?? now - agoMs
}

const maxEvents = 100_000

/** Numbers of events such as `4,7-9`. */
export function eventNumbers(text: string): readonly number[] {
  const numbers = text.split(',').flatMap((part) => {
    const [, from = '', to = from] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? []
    const [first, last] = [Number(from), Number(to)]
    if (from === '' || first < 1 || last < first || last - first >= maxEvents) {
      throw new InvalidArgumentError('They have to be numbers of events such as 4 or 4,7-9.')
    }
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
  return numbers
}
