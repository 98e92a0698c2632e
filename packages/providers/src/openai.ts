export { openai } from './openai-responses/model.ts'
export { type OpenAIOptions } from './openai-responses/options/options.ts'
export { openaiChat } from './openai-chat/model.ts'
export { type OpenAIChatOptions } from './openai-chat/options/options.ts'
export type { OpenAIChatQuirks, OpenAIChatServer } from './openai-chat/options/quirks.ts'
export type {
  OpenAICallOptions,
  OpenAIChatClient,
  OpenAIClient,
  OpenAIClientOptions,
  OpenAICreate,
} from './openai/client/client.ts'
export type { OpenAICommonOptions, OpenAICustomTool, OpenAIWarning } from './openai/options/options.ts'
