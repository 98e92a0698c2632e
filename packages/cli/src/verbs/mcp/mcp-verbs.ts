import type { ListedVerb } from '../../command/declare-verb.ts'

/** What looks at MCP servers. */
export const mcpVerbs: readonly ListedVerb[] = [
  {
    name: 'mcp',
    summary: 'list the tools of MCP servers, call one, find out what is wrong',
    example: 'tallystick mcp doctor claude_desktop_config.json',
    load: () => import('./mcp.ts'),
  },
]
