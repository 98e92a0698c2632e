import type { ModelRequest } from '@tallystick/core'
import { getOwn } from '@tallystick/core/kit'
import type { JsonObject, ToolChoice, ToolDefinition } from '@tallystick/core/vocabulary'
import { schemaInWords } from '../../shared/request/answer-instructions.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'
import { fitSchema, type FittedSchema, NotStrictError, type SchemaSize } from './strict-schema.ts'
import { toolSchema } from './tool-schema.ts'

/** The fields of a request that say what may be called. */
export interface ToolFields {
  readonly tools?: readonly JsonObject[]
  readonly tool_choice?: JsonObject
}

/** What the vendor compiles in one request, the schema of the answer included. */
const bounds = { tools: 20, optional: 24, unions: 16 }

type Warn = RenderSettings['warn']

/** The settings, apart from the request, that its tools depend on. */
export interface ToolContext {
  readonly settings: RenderSettings
  readonly names: ToolNames
  /** The names of tools that the history holds calls of. */
  readonly called: readonly string[]
  /** What the schema of the answer takes of the vendor's bounds. */
  readonly answer: SchemaSize | undefined
}

/**
 * The tools and whether they may be called. Tools stay in the request when they may not be: the vendor wants them there
 * when the history holds calls, and the prompt's cached beginning stays the same.
 */
export function toolFields(
  request: ModelRequest,
  { settings, names, called, answer }: ToolContext,
): ToolFields {
  const own = settings.strictTools
    ? strictTools(request.tools, answer, settings.warn)
    : request.tools.map((tool) => plainTool(tool, settings.warn))
  const tools = [
    ...own.map((fields, place) => wireTool(request.tools[place]!, fields, names, settings)),
    ...(settings.providerTools ?? []),
    ...(settings.mcpServers ?? []).map(({ name, toolset }) => ({
      type: 'mcp_toolset',
      mcp_server_name: name,
      ...toolset,
    })),
  ]
  if (tools.length > 0) {
    const choice = wireChoice(request, names, tools, settings.warn)
    return { tools, ...(choice && { tool_choice: choice }) }
  }
  if (request.toolChoice.type === 'any' || request.toolChoice.type === 'tool') warnOfChoice(settings.warn)
  if (called.length === 0) return {}
  const past = called.map((name) => ({ name: names.toWire(name), input_schema: { type: 'object' } }))
  return { tools: past, tool_choice: { type: 'none' } }
}

function wireTool(
  { name, description }: ToolDefinition,
  fields: JsonObject,
  names: ToolNames,
  { eagerToolInputs, toolFields: more = {} }: RenderSettings,
): JsonObject {
  return {
    name: names.toWire(name),
    ...(description.trim() !== '' && { description: description.toWellFormed() }),
    ...fields,
    ...(eagerToolInputs && { eager_input_streaming: true }),
    ...getOwn(more, name),
  }
}

function plainTool({ name, inputSchema }: ToolDefinition, warn: Warn): JsonObject {
  const { schema, notes } = toolSchema(inputSchema)
  for (const note of notes) warnOfSchema(warn, name, note)
  return { input_schema: schema }
}

/**
 * The tools, as many of them strict as the vendor takes, from the front: so a tool that is added after others changes
 * nothing before it.
 */
function strictTools(
  tools: readonly ToolDefinition[],
  answer: SchemaSize | undefined,
  warn: Warn,
): readonly JsonObject[] {
  const used = { tools: 0, optional: answer?.optional ?? 0, unions: answer?.unions ?? 0 }
  return tools.map((tool) => {
    try {
      const fits = fitSchema(tool.inputSchema)
      const wanted = {
        tools: used.tools + 1,
        optional: used.optional + fits.size.optional,
        unions: used.unions + fits.size.unions,
      }
      checkBounds(wanted)
      Object.assign(used, wanted)
      for (const note of fits.notes) warnOfSchema(warn, tool.name, note)
      return { input_schema: fits.schema, strict: true }
    } catch (error) {
      if (!(error instanceof NotStrictError)) throw error
      warnOfSchema(warn, tool.name, `not strict: ${error.message}`)
      return plainTool(tool, warn)
    }
  })
}

function checkBounds({ tools, optional, unions }: typeof bounds): void {
  if (tools > bounds.tools) throw new NotStrictError(`the vendor takes ${bounds.tools} strict tools`)
  if (optional > bounds.optional) {
    throw new NotStrictError(`the vendor takes ${bounds.optional} properties that may be left out`)
  }
  if (unions > bounds.unions) throw new NotStrictError(`the vendor takes ${bounds.unions} choices of types`)
}

/** The schema of the answer as the vendor can hold the model to it; `undefined` where it cannot. */
export function answerSchema(schema: JsonObject | undefined, warn: Warn): FittedSchema | undefined {
  if (schema === undefined) return undefined
  try {
    const fits = fitSchema(schema)
    checkBounds({ tools: 0, ...fits.size })
    for (const note of fits.notes)
      warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
    return fits
  } catch (error) {
    if (!(error instanceof NotStrictError)) throw error
    warn({ what: 'output_schema', message: schemaInWords(error.message) })
    return undefined
  }
}

function warnOfSchema(warn: Warn, tool: string, note: string): void {
  warn({ what: 'schema', message: `The schema of the tool ${tool}: ${note}.` })
}

function warnOfChoice(warn: Warn): void {
  const message = 'A call was demanded of a tool that the request does not offer, so none is.'
  warn({ what: 'tool_choice', message })
}

function wireChoice(
  { toolChoice: choice, parallelToolCalls: parallel }: ModelRequest,
  names: ToolNames,
  tools: readonly JsonObject[],
  warn: Warn,
): JsonObject | undefined {
  const alone = parallel ? {} : { disable_parallel_tool_use: true }
  if (choice.type === 'none') return { type: 'none' }
  if (choice.type === 'any') return { type: 'any', ...alone }
  const named = namedTool(choice, names, tools)
  if (named !== undefined) return { type: 'tool', name: named, ...alone }
  if (choice.type === 'tool') warnOfChoice(warn)
  return parallel ? undefined : { type: 'auto', ...alone }
}

/** The wire's name of the tool that has to be called: one of ours, or else one of the vendor's. */
function namedTool(choice: ToolChoice, names: ToolNames, tools: readonly JsonObject[]): string | undefined {
  if (choice.type !== 'tool') return undefined
  const offered = (name: string): boolean => tools.some((tool) => tool['name'] === name)
  return [names.toWire(choice.name), choice.name].find(offered)
}
