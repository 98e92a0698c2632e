export { ollama } from './ollama/model.ts'
export { type OllamaOptions } from './ollama/options/options.ts'
export type { OllamaClientOptions } from './ollama/client/client.ts'
export type { OllamaWarning } from './ollama/options/options.ts'
