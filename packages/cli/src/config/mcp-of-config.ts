import { ConfigurationError } from '@tallystick/core'
import type { McpOptions } from '@tallystick/tools/mcp'
import { importConfig } from './load-config.ts'

/** The MCP servers that a configuration of this command names. Throws a `ConfigurationError` where it names no server. */
export async function mcpOfConfig(path: string): Promise<McpOptions> {
  const source = await importConfig(path)
  const { mcp } = Object(source) as { readonly mcp?: McpOptions }
  if (typeof source !== 'function' && mcp !== undefined) return mcp
  throw new ConfigurationError(
    `${path} names no MCP servers. Let its default export be defineConfig({ agents, mcp: { servers: { … } } }), and not a function.`,
  )
}
