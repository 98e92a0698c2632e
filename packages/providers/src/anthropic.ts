export { anthropic } from './anthropic/model.ts'
export type {
  AnthropicMcpServer,
  AnthropicOptions,
  AnthropicThinking,
  AnthropicWarning,
} from './anthropic/options/options.ts'
export type {
  AnthropicCallOptions,
  AnthropicClient,
  AnthropicClientOptions,
  AnthropicMiddleware,
} from './anthropic/client/client.ts'
