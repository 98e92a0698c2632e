import type { Ledger } from '@tallystick/core'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { Client } from 'pg'

/** Where a ledger is. */
export type Store =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly connectionString: string; readonly schema: string }

/** How a ledger is opened: `impatient` with a process that holds its lock; `overtake` those who drive its runs, as `takeOver` does. */
export interface Opening {
  readonly impatient?: boolean
  readonly overtake?: boolean
}

export function openStore(store: Store, opening: Opening = {}): Ledger {
  const ledger = openedStore(store, opening)
  if (opening.overtake !== true) return ledger
  return {
    ...ledger,
    lease: async () => undefined,
    async acquire(runId, claim) {
      const from = (await ledger.lease(runId))?.holder
      return await ledger.acquire(runId, claim && { ...claim, from })
    },
  }
}

function openedStore(store: Store, { impatient = false }: Opening): Ledger {
  if (store.kind === 'postgres') {
    const { connectionString, schema } = store
    return postgresLedger({ connectionString, schema, maxConnections: 3 })
  }
  const options = { busyTimeoutMs: impatient ? 0 : 20_000 }
  return sqliteLedger(store.path, options)
}

/**
 * Resolves when the server has ended the connections of a killed process, by their name. A Postgres server finishes the
 * statement of a client that is gone, so until then it may still commit what that process was appending.
 */
export async function untilGone(store: Store, connectionName: string): Promise<void> {
  if (store.kind === 'sqlite') return
  const client = new Client({ connectionString: store.connectionString })
  await client.connect()
  const open = 'select 1 from pg_stat_activity where application_name = $1 limit 1'
  try {
    while ((await client.query(open, [connectionName])).rows.length > 0);
  } finally {
    await client.end()
  }
}
