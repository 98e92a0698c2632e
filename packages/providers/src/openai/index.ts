export { openai, type OpenAIOptions } from '../openai-responses/model.ts'
export { openaiChat, type OpenAIChatOptions } from '../openai-chat/model.ts'
export type { OpenAIChatQuirks, OpenAIChatServer } from '../openai-chat/quirks.ts'
export type {
  OpenAICallOptions,
  OpenAIChatClient,
  OpenAIClient,
  OpenAIClientOptions,
  OpenAICreate,
} from './client.ts'
export type { OpenAICommonOptions, OpenAICustomTool, OpenAIWarning } from './options.ts'
