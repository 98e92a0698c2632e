export { ollama, type OllamaOptions } from './ollama/model.ts'
export type { OllamaClientOptions } from './ollama/client/client.ts'
export type { OllamaWarning } from './ollama/request/request.ts'
