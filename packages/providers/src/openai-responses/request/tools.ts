import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { takenChoice } from '../../openai/request/sampling.ts'
import { offeredChoice, type OfferedChoice, offeredTool } from '../../openai/request/offered-tool.ts'
import { getOwn } from '@tallystick/core/kit'
import type { NativeKind } from '../client/wire.ts'
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
  const choice = takenChoice(wireChoice(request, names, settings), refused, settings.warn)
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireChoice(
  { toolChoice }: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
): OfferedChoice | { readonly type: NativeKind } {
  const native = toolChoice.type === 'tool' ? nativeKind(toolChoice.name, settings) : undefined
  return native === undefined ? offeredChoice(toolChoice, names, settings) : { type: native }
}

function nativeKind(name: string, { nativeTools }: RenderSettings): NativeKind | undefined {
  return (['shell', 'apply_patch'] as const).find((kind) => nativeTools[kind] === name)
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const native = nativeKind(tool.name, settings)
  if (native !== undefined) {
    const local = native === 'shell' ? { environment: { type: 'local' } } : {}
    return { type: native, ...local, ...getOwn(settings.toolFields, tool.name) }
  }
  const { type, fields, strict, more } = offeredTool(tool, names, { ...settings, knowsStrict: true })
  return { type, ...fields, ...(strict !== undefined && { strict }), ...more }
}
