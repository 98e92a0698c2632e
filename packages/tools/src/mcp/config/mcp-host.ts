/** The programs whose files of MCP servers can be read. */
export const mcpHosts = [
  'claude-desktop',
  'claude-code',
  'cursor',
  'vscode',
  'codex',
  'gemini',
  'windsurf',
] as const
export type McpHost = (typeof mcpHosts)[number]
