import type { Equivalent } from '../equivalent.ts'

/** Every mutant that is left out, and why. */
export const equivalents: readonly Equivalent[] = []
