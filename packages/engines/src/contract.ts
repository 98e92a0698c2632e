// The contract of an engine as cases, for bindings of your own.
import { engineContract } from './contract/engine-contract.ts'
import { runsContract } from './contract/run-contract.ts'

export type { EngineContractCase, EngineHarness, OpenEngine } from './contract/engine-contract.ts'
export type { OpenSite, RunsContractCase, RunsHarness } from './contract/run-contract.ts'

/**
 * The contract of the port: `contractOf.engine(harness)` binds its promises to a binding, and `contractOf.runs(harness)` those
 * about runs that it drives.
 */
export const contractOf: { readonly engine: typeof engineContract; readonly runs: typeof runsContract } = {
  engine: engineContract,
  runs: runsContract,
}
