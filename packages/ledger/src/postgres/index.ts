export { postgresLedger, type PostgresLedger } from './postgres-ledger.ts'
export type { PostgresLedgerOptions } from './postgres-ledger-options.ts'
export type { OpenTransaction, TailHorizon } from './tail-horizon.ts'
