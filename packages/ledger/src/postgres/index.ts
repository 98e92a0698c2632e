export { postgresLedger, type PostgresLedger } from './postgres-ledger.ts'
export type { PostgresLedgerOptions } from './options.ts'
export type { OpenTransaction, TailHorizon } from './search.ts'
