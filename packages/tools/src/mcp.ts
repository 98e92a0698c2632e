// MCP servers, and their tools as tools of agents.
export { loadMcpConfig } from './mcp/load-config.ts'
export type { LoadedMcp, LoadMcpOptions } from './mcp/load-config.ts'
export { type McpHost, mcpHosts } from './mcp/load-config.ts'
export { serveMcp } from './mcp/serve-mcp.ts'
export type { ServedMcp } from './mcp/serve-mcp.ts'
export type { ServeHttpOptions, ServeMcpOptions } from './mcp/serve-mcp.ts'
export type { ServedCall } from './mcp/serve-mcp.ts'
export { oauthServer } from './mcp/oauth.ts'
export type { OAuthOptions } from './mcp/oauth.ts'
export { mcpTools } from './mcp/mcp-tools.ts'
export type {
  McpCallOptions,
  McpManager,
  McpPrompt,
  McpPromptMessages,
  McpResource,
  McpServerStatus,
} from './mcp/mcp-tools.ts'
export type { McpOptions } from './mcp/options.ts'
export type { HttpServer, McpServer, StdioServer } from './mcp/options.ts'
export type { McpHooks, McpQuestion } from './mcp/options.ts'
export type { ToolChanges } from './mcp/listing.ts'
export type { ConnectionState } from './mcp/connection.ts'
