export { postgresLedger, type PostgresLedger } from './postgres-ledger.ts'
export type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'
export type { OpenTransaction, TailHorizon } from './rows/tail-horizon.ts'
