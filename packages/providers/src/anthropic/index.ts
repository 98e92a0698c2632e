export { anthropic, type AnthropicOptions, type AnthropicThinking } from './model.ts'
export type { AnthropicCallOptions, AnthropicClient, AnthropicMiddleware, ClientOptions } from './client.ts'
