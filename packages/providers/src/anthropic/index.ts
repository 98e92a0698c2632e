export { anthropic } from './model.ts'
export type { AnthropicMcpServer, AnthropicOptions, AnthropicThinking, AnthropicWarning } from './options.ts'
export type {
  AnthropicCallOptions,
  AnthropicClient,
  AnthropicClientOptions,
  AnthropicMiddleware,
} from './client.ts'
