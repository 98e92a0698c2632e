export { createClient, type EngineClient, type EnqueueOptions, type WakeOptions } from './client.ts'
export type { Drive, Engine, EngineCapability, EngineWorker, Wake } from './engine.ts'
export { createDrive, startWorker, type WorkerOptions } from './worker.ts'
