import type { Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { UnfitInput } from '@tallystick/core/vocabulary'
import { repairedInput } from '../repair/repaired-input.ts'

const { fields, listOf, valueThat } = option
const toolList = fields<{ readonly tools: readonly object[] }>({
  tools: listOf(valueThat('a tool', (value) => typeof Object(value).check === 'function')),
})

/**
 * Returns the same tools, which try once to repair an input that does not fit: JSON with small mistakes (trailing
 * commas, single quotes, a code fence, missing closing brackets …), and texts where the schema expects a number, a
 * boolean, an object or a list. A repaired input that fits replaces the model's input: it is checked, approved,
 * recorded and run, and the repairs are on record. Only inputs with exactly one meaning are repaired; a write whose
 * input ended too early needs an approval.
 */
export function repairInputs<Context>(tools: readonly Tool<Context>[]): readonly Tool<Context>[] {
  requireOptions('repairInputs', toolList, { tools })
  return tools.map((tool) =>
    Object.freeze({ ...tool, repair: (unfit: UnfitInput) => repairedInput(tool, unfit) }),
  )
}
