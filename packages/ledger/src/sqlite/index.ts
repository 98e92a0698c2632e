export { sqliteLedger } from './sqlite-ledger.ts'
export type { SqliteLedgerOptions } from './open-database.ts'
export { sqliteKeyring, type SqliteKeyring } from './keyring.ts'
