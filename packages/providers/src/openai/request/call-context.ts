import { type ModelRequest } from '@tallystick/core'
import { getOwn } from '@tallystick/core/kit'
import { type Json, type JsonObject, withoutAddedNulls } from '@tallystick/core/vocabulary'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { OpenAICustomTool } from '../options/options.ts'

/** The parts of the request that reading a call needs. */
export interface CallContext {
  readonly provider: string
  /** The tool's own name, for the name that the wire knows it by. */
  readonly toolName: (wireName: string) => string
  /** The field that the text of a custom tool becomes. */
  readonly customField: (toolName: string) => string
  /** A call's input, once what only the wire needed is taken away. */
  readonly cleaned: (toolName: string, input: JsonObject) => JsonObject
  /** Whether a tool goes by this name on the wire. */
  readonly knows: (wireName: string) => boolean
  /** Whether the tool has no parameters, so that a call without an input lacks nothing. */
  readonly takesNothing: (toolName: string) => boolean
}

/** The options that decide how calls are read. */
interface CallOptions {
  readonly provider: string
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  /** Whether the wire's schemas may hold nulls that the tools' own do not. */
  readonly strictTools: boolean
}

/** How the calls of the reply to this request are read. */
export function callContext(request: ModelRequest, names: ToolNames, options: CallOptions): CallContext {
  const schemas = new Map(request.tools.map((tool) => [tool.name, tool.inputSchema]))
  const wireNames = new Set(request.tools.map((tool) => names.toWire(tool.name)))
  return {
    provider: options.provider,
    toolName: names.fromWire,
    customField: (tool) => getOwn(options.customTools, tool)?.field ?? 'input',
    cleaned: (tool, input) => {
      const schema = options.strictTools ? schemas.get(tool) : undefined
      return schema === undefined ? input : withoutAddedNulls(schema, input)
    },
    knows: (wireName) => wireNames.has(wireName),
    takesNothing: (tool) => {
      const schema = schemas.get(tool)
      return schema !== undefined && !describing.some((keyword) => isFilled(schema[keyword]))
    },
  }
}

/** Keywords of a schema that say what an input holds. */
const describing = ['properties', 'patternProperties', 'anyOf', 'oneOf', 'allOf', '$ref', 'required'] as const

function isFilled(value: Json | undefined): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined
}
