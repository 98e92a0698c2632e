import { InvalidArgumentError } from 'commander'
import type { JsonObject } from '@tallystick/core'

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
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  } catch {
    // Not JSON at all: the message below says what it should be.
  }
  throw new InvalidArgumentError(`It has to be a JSON object, such as '{"quantity":12}'.`)
}
