import type { Ledger } from '@tallystick/core'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

/** Where a ledger is. */
export type Store =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly connectionString: string; readonly schema: string }

/** How a ledger is opened: `overtake` any other process that drives its runs; `impatient` with a process that holds its lock. */
export interface Opening {
  readonly overtake?: boolean
  readonly impatient?: boolean
}

/** Opens a ledger. */
export function openStore(store: Store, { overtake = false, impatient = false }: Opening = {}): Ledger {
  if (store.kind === 'postgres') {
    const { connectionString, schema } = store
    return postgresLedger({ connectionString, schema, maxConnections: 3 })
  }
  const options = { busyTimeoutMs: impatient ? 0 : 20_000, ...(overtake && { oneWriter: false }) }
  return sqliteLedger(store.path, options)
}
