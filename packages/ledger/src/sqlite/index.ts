export type { SqliteLedgerOptions } from './open-database.ts'
export { sqliteLedger } from './sqlite-ledger.ts'
