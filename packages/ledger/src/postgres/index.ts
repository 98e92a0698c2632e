export { postgresLedger, type PostgresLedger } from './postgres-ledger.ts'
export type { OpenTransaction, PostgresLedgerOptions, TailHorizon } from './options.ts'
