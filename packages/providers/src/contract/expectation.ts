import { canonicalJson, type Json } from '@tallystick/core/vocabulary'

/** Throws unless it holds. `what` is the claim. */
export function require(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`Not so: ${what}.`)
}

/** Throws unless the two are the same, as JSON. `what` names the thing. */
export function requireEqual(found: unknown, expected: unknown, what: string): void {
  const [left, right] = [found, expected].map((value) => canonicalJson((value ?? null) as Json))
  if (left !== right) throw new Error(`${what}: expected ${right}, found ${left}.`)
}
