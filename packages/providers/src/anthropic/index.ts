export { anthropic, type AnthropicOptions, type AnthropicThinking } from './model.ts'
export type {
  AnthropicCallOptions,
  AnthropicClient,
  AnthropicClientOptions,
  AnthropicMiddleware,
} from './client.ts'
