import type { Equivalent } from '../equivalent.ts'
import { machineEquivalents } from './machine.ts'
import { toolsEquivalents } from './tools.ts'

/** Every mutant that is left out, and why. */
export const equivalents: readonly Equivalent[] = [...machineEquivalents, ...toolsEquivalents]
