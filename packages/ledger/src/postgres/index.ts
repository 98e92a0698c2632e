export { postgresLedger } from './postgres-ledger.ts'
export type { PostgresLedgerOptions } from './postgres-ledger-options.ts'
