import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { customToolOf } from '../../openai/request/call-context.ts'
import { fitSchema } from '../../openai/request/strict-schema.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'

/** The tools, and whether they may be called. Without tools these servers take no word about them. */
export function toolFields(request: ModelRequest, names: ToolNames, settings: RenderSettings): object {
  const { quirks, warn } = settings
  const { tools, toolChoice, parallelToolCalls } = request
  if (tools.length === 0) return {}
  if (quirks.toolChoice === 'none' && toolChoice.type !== 'auto') {
    // To offer none is the one way to forbid them all that every server obeys.
    if (toolChoice.type === 'none') return {}
    const message = 'The server obeys no choice of tools, so the model was free to call any or none.'
    warn({ what: 'tool_choice', message })
  }
  if (!parallelToolCalls && !quirks.parallelToolCalls) {
    const message = 'The server cannot be told to make one call at a time, so it may make several.'
    warn({ what: 'parallel_tool_calls', message })
  }
  const choice = quirks.toolChoice === 'none' ? undefined : wireChoice(request, names, settings)
  return {
    tools: tools.map((tool) => wireTool(tool, names, settings)),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!parallelToolCalls && quirks.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const name = names.toWire(tool.name)
  const described = tool.description.trim() !== '' && { description: tool.description.toWellFormed() }
  const more = Object.hasOwn(settings.toolFields, tool.name) ? settings.toolFields[tool.name] : {}
  const custom = customToolOf(settings.customTools, tool.name)
  if (custom) {
    const body = { name, ...described, ...(custom.format && { format: custom.format }), ...more }
    return { type: 'custom', custom: body }
  }
  const parameters = { type: 'object', ...tool.inputSchema }
  if (!settings.strictTools)
    return { type: 'function', function: { name, ...described, parameters, ...more } }
  const { schema, strict, notes } = settings.quirks.strict
    ? fitSchema(tool.inputSchema)
    : { schema: parameters, strict: false, notes: ['the server knows no strict tools'] }
  for (const note of notes) {
    settings.warn({ what: 'schema', message: `The schema of the tool ${tool.name}: ${note}.` })
  }
  const body = { name, ...described, parameters: schema, ...(strict && { strict }), ...more }
  return { type: 'function', function: body }
}

function wireChoice(
  { toolChoice }: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
): string | JsonObject | undefined {
  switch (toolChoice.type) {
    case 'auto':
      return undefined
    case 'any':
      return 'required'
    case 'none':
      return 'none'
    case 'tool': {
      const type = customToolOf(settings.customTools, toolChoice.name) ? 'custom' : 'function'
      return { type, [type]: { name: names.toWire(toolChoice.name) } }
    }
  }
}
