export { fromAiSdk } from './ai-sdk/model.ts'
export { type AiSdkOptions } from './ai-sdk/options/options.ts'
export type { AiSdkModel } from './ai-sdk/client/ai-sdk-model.ts'
export type { AiSdkWarning } from './ai-sdk/options/warning.ts'
