// The contracts of the ports as cases: the promises of every ledger and of every model adapter.
export { type ContractCase, contractOf, type Contracts, type EmptyStore } from './contract/contract-of.ts'
export { ledgerContract, type LedgerContractCase, type OpenLedger } from './contract/ledger-contract.ts'
export type {
  ContractReply,
  ModelContractCase,
  ModelHarness,
  Need,
  Scene,
  Stage,
} from './model-contract/case.ts'
export { httpHarness, type HttpWire } from './model-contract/http-harness.ts'
export { modelContract } from './model-contract/model-contract.ts'
export type { PolicyContractOptions } from './contract/policy-contract.ts'
export type { ToolContractOptions } from './contract/tool-contract.ts'
