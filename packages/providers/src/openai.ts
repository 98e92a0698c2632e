export { openai, type OpenAIOptions } from './openai-responses/model.ts'
export { openaiChat, type OpenAIChatOptions } from './openai-chat/model.ts'
export type { OpenAIChatQuirks, OpenAIChatServer } from './openai-chat/options/quirks.ts'
export type {
  OpenAICallOptions,
  OpenAIChatClient,
  OpenAIClient,
  OpenAIClientOptions,
  OpenAICreate,
} from './openai/client/client.ts'
export type { OpenAICommonOptions, OpenAICustomTool, OpenAIWarning } from './openai/options/options.ts'
