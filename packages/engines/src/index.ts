export type { Drive, Engine, EngineCapability, EngineWorker, Wake } from './engine.ts'
