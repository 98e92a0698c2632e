export { openai } from './openai/responses.ts'
export { openaiChat } from './openai/chat.ts'
export type {
  OpenAIChatOptions,
  OpenAIChatQuirks,
  OpenAIChatServer,
  OpenAICommonOptions,
  OpenAICustomTool,
  OpenAIOptions,
  OpenAIWarning,
} from './openai/options.ts'
export type {
  OpenAICallOptions,
  OpenAIChatClient,
  OpenAIClient,
  OpenAIClientOptions,
  OpenAICreate,
} from './openai/client.ts'
