import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { takenChoice } from '../../openai/request/sampling.ts'
import { offeredChoice, offeredTool } from '../../openai/request/offered-tool.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'

/** The tools, and whether they may be called. Without tools the vendor takes no word about them. */
export function toolFields(
  request: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
  refused: readonly string[],
): object {
  const tools = [...settings.providerTools, ...request.tools.map((tool) => wireTool(tool, names, settings))]
  if (tools.length === 0) return {}
  const choice = takenChoice(offeredChoice(request.toolChoice, names, settings), refused, settings.warn)
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const { type, fields, strict, more } = offeredTool(tool, names, { ...settings, knowsStrict: true })
  return { type, ...fields, ...(strict !== undefined && { strict }), ...more }
}
