import { differenceOf } from '@tallystick/core/kit'

/** Throws unless it holds. `what` is the claim. */
export function require(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`Not so: ${what}.`)
}

/** Throws unless the two are the same, as JSON. `what` names the thing. */
export function requireEqual(found: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(found ?? null, expected ?? null)
  if (difference) throw new Error(`${what}: expected ${difference.expected}, found ${difference.found}.`)
}
