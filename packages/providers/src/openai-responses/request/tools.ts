import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { customToolOf } from '../../openai/request/call-context.ts'
import { fitSchema } from '../../openai/request/strict-schema.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'

/** The tools, and whether they may be called. Without tools the vendor takes no word about them. */
export function toolFields(request: ModelRequest, names: ToolNames, settings: RenderSettings): object {
  const tools = [...settings.providerTools, ...request.tools.map((tool) => wireTool(tool, names, settings))]
  if (tools.length === 0) return {}
  const choice = wireChoice(request, names, settings)
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const { toolFields: fields, warn } = settings
  const name = names.toWire(tool.name)
  const described = tool.description.trim() !== '' && { description: tool.description.toWellFormed() }
  const more = Object.hasOwn(fields, tool.name) ? fields[tool.name] : {}
  const custom = customToolOf(settings.customTools, tool.name)
  if (custom)
    return { type: 'custom', name, ...described, ...(custom.format && { format: custom.format }), ...more }
  const given = { type: 'object', ...tool.inputSchema }
  if (!settings.strictTools) {
    return { type: 'function', name, ...described, parameters: given, strict: false, ...more }
  }
  const { schema, strict, notes } = fitSchema(tool.inputSchema)
  for (const note of notes) warn({ what: 'schema', message: `The schema of the tool ${tool.name}: ${note}.` })
  return { type: 'function', name, ...described, parameters: schema, strict, ...more }
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
      return { type, name: names.toWire(toolChoice.name) }
    }
  }
}
