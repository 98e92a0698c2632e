// MCP servers, and their tools as tools of agents.
export { loadMcpConfig } from './mcp/config/load-mcp-config.ts'
export type { LoadedMcp, LoadMcpOptions } from './mcp/config/load-mcp-config.ts'
export { type McpHost, mcpHosts } from './mcp/config/mcp-host.ts'
export { serveMcp } from './mcp/serve/serve-mcp.ts'
export type { ServedMcp } from './mcp/serve/serve-mcp.ts'
export type { ServeHttpOptions, ServeMcpOptions } from './mcp/serve/serve-options.ts'
export type { ServedCall } from './mcp/serve/served-call.ts'
export { oauthServer } from './mcp/oauth/oauth-server.ts'
export type { OAuthOptions } from './mcp/oauth/oauth-server.ts'
export { mcpTools } from './mcp/manager/mcp-tools.ts'
export type {
  McpCallOptions,
  McpManager,
  McpPrompt,
  McpPromptMessages,
  McpResource,
  McpServerStatus,
} from './mcp/manager/manager.ts'
export type { McpOptions } from './mcp/options/manager-options.ts'
export type { HttpServer, McpServer, StdioServer } from './mcp/options/server-options.ts'
export type { McpHooks, McpQuestion } from './mcp/options/hooks.ts'
export type { ToolChanges } from './mcp/listing/tool-changes.ts'
export type { ConnectionState } from './mcp/connection/connection.ts'
