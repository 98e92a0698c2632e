import type { Equivalent } from '../equivalent.ts'
import { toolsEquivalents } from './tools.ts'

/** Every mutant that is left out, and why. */
export const equivalents: readonly Equivalent[] = [...toolsEquivalents]
