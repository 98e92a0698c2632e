export { postgresLedger, type PostgresLedger } from './postgres-ledger.ts'
export type {
  OpenTransaction,
  PostgresClient,
  PostgresLedgerOptions,
  PostgresPool,
  TailHorizon,
} from './options.ts'
