import { getOwn } from '@tallystick/core/kit'
import type { JsonObject, ToolChoice, ToolDefinition } from '@tallystick/core/vocabulary'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { Warn } from '../../shared/options/warning.ts'
import type { OpenAICustomTool, OpenAIWarning } from '../options/options.ts'
import { fitSchema } from './strict-schema.ts'

/** The settings that decide how a tool is offered. */
export interface OfferSettings {
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly strictTools: boolean
  /** Whether the server knows strict tools. */
  readonly knowsStrict: boolean
  readonly warn: Warn<OpenAIWarning>
}

/** A tool as both wires of OpenAI know it. Each wire lays these parts out in its own way. */
export interface OfferedTool {
  readonly type: 'function' | 'custom'
  /** The name, the description, and the parameters of a function or the format of a custom tool. */
  readonly fields: JsonObject
  /** Whether the model is held to the schema; absent for a custom tool, which has none. */
  readonly strict?: boolean
  /** The fields that the options add to this tool. */
  readonly more: JsonObject
}

/** Returns a tool as the wire offers it. Warns of what its schema loses. */
export function offeredTool(tool: ToolDefinition, names: ToolNames, settings: OfferSettings): OfferedTool {
  const more = getOwn(settings.toolFields, tool.name) ?? {}
  const described: JsonObject = {
    name: names.toWire(tool.name),
    ...(tool.description.trim() !== '' && { description: tool.description.toWellFormed() }),
  }
  const custom = getOwn(settings.customTools, tool.name)
  if (custom) {
    return { type: 'custom', fields: { ...described, ...(custom.format && { format: custom.format }) }, more }
  }
  const { schema, strict } = parametersOf(tool, settings)
  return { type: 'function', fields: { ...described, parameters: schema }, strict, more }
}

function parametersOf(
  { name, inputSchema }: ToolDefinition,
  { strictTools, knowsStrict, warn }: OfferSettings,
): { readonly schema: JsonObject; readonly strict: boolean } {
  const plain = { schema: { type: 'object', ...inputSchema }, strict: false }
  if (!strictTools) return plain
  const { notes, ...fitted } = knowsStrict
    ? fitSchema(inputSchema)
    : { ...plain, notes: ['the server knows no strict tools'] }
  for (const note of notes) warn({ what: 'schema', message: `The schema of the tool ${name}: ${note}.` })
  return fitted
}

/** Which tools may be called: a word, or the one tool that has to be; `undefined` leaves it to the model. */
export type OfferedChoice =
  | 'required'
  | 'none'
  | { readonly type: 'function' | 'custom'; readonly name: string }
  | undefined

/** Returns the choice of tools as both wires of OpenAI say it. */
export function offeredChoice(
  choice: ToolChoice,
  names: ToolNames,
  { customTools }: Pick<OfferSettings, 'customTools'>,
): OfferedChoice {
  switch (choice.type) {
    case 'auto':
      return undefined
    case 'any':
      return 'required'
    case 'none':
      return 'none'
    case 'tool': {
      const type = getOwn(customTools, choice.name) ? 'custom' : 'function'
      return { type, name: names.toWire(choice.name) }
    }
  }
}
