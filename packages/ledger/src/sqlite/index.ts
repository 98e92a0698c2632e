export { sqliteLedger } from './sqlite-ledger.ts'
export type { SqliteLedgerOptions } from './connection/sqlite-ledger-options.ts'
export { sqliteKeyring, type SqliteKeyring } from './sqlite-keyring.ts'
