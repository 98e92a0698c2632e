import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { takenChoice } from '../../openai/request/sampling.ts'
import { offeredChoice, type OfferedChoice, offeredTool } from '../../openai/request/offered-tool.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'

/** The tools, and whether they may be called. Without tools these servers take no word about them. */
export function toolFields(
  request: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
  refused: readonly string[],
): object {
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
    const message = 'The server has no way to ask for one call at a time, so it may make several.'
    warn({ what: 'parallel_tool_calls', message })
  }
  const choice =
    quirks.toolChoice === 'none'
      ? undefined
      : takenChoice(wireChoice(offeredChoice(toolChoice, names, settings)), refused, warn)
  return {
    tools: tools.map((tool) => wireTool(tool, names, settings)),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!parallelToolCalls && quirks.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const { type, fields, strict, more } = offeredTool(tool, names, {
    ...settings,
    knowsStrict: settings.quirks.strict,
  })
  return { type, [type]: { ...fields, ...(strict && { strict }), ...more } }
}

function wireChoice(choice: OfferedChoice): string | JsonObject | undefined {
  return typeof choice === 'object' ? { type: choice.type, [choice.type]: { name: choice.name } } : choice
}
