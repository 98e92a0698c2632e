export { sqliteLedger } from './sqlite-ledger.ts'
export type { SqliteLedgerOptions } from './options.ts'
export { sqliteKeyring, type SqliteKeyring } from './keyring.ts'
