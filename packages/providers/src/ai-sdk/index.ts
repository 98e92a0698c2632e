export { fromAiSdk, type AiSdkOptions } from './from-ai-sdk.ts'
export type { AiSdkModel } from './wire.ts'
export type { AiSdkWarning } from './warning.ts'
