import type { Json, RepairedInput, Tool, UnfitInput } from '@tallystick/core/vocabulary'
import { fittedValue } from './fitted-value.ts'
import { nearJson } from './near-json.ts'

/** More than a near miss has. */
const maxRepairs = 20

/**
 * Repairs the input of a model for the schema of a tool; returns `undefined` if it could mean several things or
 * nothing.
 */
export function repairedInput(
  { inputSchema }: Pick<Tool, 'inputSchema'>,
  { input, malformed }: Pick<UnfitInput, 'input' | 'malformed'>,
): RepairedInput | undefined {
  const read = malformed ? nearJson(malformed.text) : { value: input as Json, repairs: [], isCut: false }
  if (read === undefined) return undefined
  const { value, repairs: fits } = fittedValue(inputSchema, read.value)
  const repairs = [...read.repairs, ...fits]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (repairs.length === 0 || repairs.length > maxRepairs) return undefined
  return { input: value as RepairedInput['input'], repairs, isGuess: read.isCut }
}
