export { ollama, type OllamaOptions } from './model.ts'
export type { OllamaClientOptions } from './client.ts'
