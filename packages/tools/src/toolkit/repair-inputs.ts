import type { Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { UnfitInput } from '@tallystick/core/vocabulary'
import { repairedInput } from '../repair/repaired-input.ts'

const { fields, listOf, valueThat } = option
const toolList = fields<{ readonly tools: readonly object[] }>({
  tools: listOf(valueThat('a tool', (value) => typeof Object(value).check === 'function')),
})

/**
 * The same tools, which try once to read an input that does not fit: JSON with small mistakes (trailing commas, single quotes,
 * a code fence, missing closing brackets …), and texts where the schema expects a number, a truth value, an object or a list.
 * What fits after that is checked, approved, recorded and run in the place of the model's input, with what was repaired on
 * record. Only what has one meaning is read; a write whose input ended too early asks a person.
 */
export function repairInputs<Context>(tools: readonly Tool<Context>[]): readonly Tool<Context>[] {
  requireOptions('repairInputs', toolList, { tools })
  return tools.map((tool) =>
    Object.freeze({ ...tool, repair: (unfit: UnfitInput) => repairedInput(tool, unfit) }),
  )
}
