import * as parts from './zod-parts.ts'

/** Returns what core uses of zod. */
export function zod(): typeof parts {
  return parts
}
