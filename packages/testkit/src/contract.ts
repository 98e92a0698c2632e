// The contracts of the ports as cases: what every ledger has to keep.
export { type ContractCase, contractOf, type Contracts, type EmptyStore } from './contract/contract-of.ts'
export { ledgerContract, type LedgerContractCase, type OpenLedger } from './contract/ledger-contract.ts'
