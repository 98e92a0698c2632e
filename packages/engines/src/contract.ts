// The contract of an engine as cases, for bindings of your own.
import { engineContract } from './contract/engine-contract.ts'

export type { EngineContractCase, EngineHarness, OpenEngine } from './contract/engine-contract.ts'

/** The contract of the port: `contractOf.engine(harness)` binds its promises to a binding. */
export const contractOf: { readonly engine: typeof engineContract } = { engine: engineContract }
