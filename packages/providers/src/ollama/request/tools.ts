import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { RenderSettings } from './request-settings.ts'
import type { RenderedSchema } from './tool-schema.ts'

/** What rendering a tool needs: the settings, and the function that fits its schema to the wire. */
export interface Rendering {
  readonly settings: RenderSettings
  readonly schemas: (schema: JsonObject) => RenderedSchema
}

/** The wire cannot forbid tools, nor demand one: what may not be called is not shown. */
export function offered({ tools, toolChoice }: ModelRequest): readonly ToolDefinition[] {
  if (toolChoice.type === 'none') return []
  return toolChoice.type === 'tool' ? tools.filter(({ name }) => name === toolChoice.name) : tools
}

/** A tool as the wire offers it. Warns of what its schema loses. */
export function wireTool(
  { name, description, inputSchema }: ToolDefinition,
  names: ToolNames,
  { settings, schemas }: Rendering,
): JsonObject {
  const { schema, inWords } = schemas(inputSchema)
  if (inWords.length > 0) {
    const what = `${inWords.join(', ')} in the schema of the tool ${name}`
    settings.warn({
      what: 'schema',
      message: `Ollama has no word for ${what}: told in descriptions instead.`,
    })
  }
  return {
    type: 'function',
    function: { name: names.toWire(name), description: description.toWellFormed(), parameters: schema },
  }
}
