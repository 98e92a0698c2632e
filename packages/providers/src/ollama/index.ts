export { ollama, type OllamaOptions } from './model.ts'
export type { OllamaClientOptions } from './client.ts'
export type { OllamaWarning } from './request.ts'
