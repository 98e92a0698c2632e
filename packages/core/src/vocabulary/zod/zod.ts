import * as parts from './zod-parts.ts'

/**
 * Returns what core uses of zod. The published package runs the code of zod when this is first called (`scripts/bundle`):
 * few processes check a value that a quick check does not take.
 */
export function zod(): typeof parts {
  return parts
}
