// Vocabulary: what is said in a ledger.
export * from './vocabulary/agent-definition.ts'
export * from './vocabulary/content.ts'
export * from './vocabulary/event.ts'
export * from './vocabulary/event-catalogue.ts'
export * from './vocabulary/failure.ts'
export * from './vocabulary/ids.ts'
export * from './vocabulary/json.ts'
export * from './vocabulary/limits.ts'
export * from './vocabulary/signal.ts'
export * from './vocabulary/command.ts'
export * from './vocabulary/tool-definition.ts'
export * from './vocabulary/usage.ts'

// Ports: what the runtime needs of others.
export * from './ports/clock.ts'
export * from './ports/ledger.ts'
export * from './ports/model.ts'
export * from './ports/tool.ts'

export * from './errors.ts'
