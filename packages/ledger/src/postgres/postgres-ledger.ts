import type { OpenLedger } from '@tallystick/core/store-kit'
import { digestNatively } from '../format/chain.ts'
import { openLedger } from '../store/open-ledger.ts'
import type { RunId } from '@tallystick/core'
import type { InboxEntry } from '@tallystick/core/vocabulary'
import type { PostgresClient, PostgresLedgerOptions, TailHorizon } from './options.ts'
import { PostgresStore } from './postgres-store.ts'

/** A ledger in Postgres, with its own questions beyond the port. */
export interface PostgresLedger extends OpenLedger {
  /**
   * How far tails over all runs lag. Worth an alarm: one forgotten transaction, in any database of the server, holds them
   * back as long as it is open. Nothing else waits for it.
   */
  horizon(): Promise<TailHorizon>
  /**
   * Puts a command into the inbox of a run; with `within`, in the transaction that is open on that client of the same database, so
   * that a command and a job of the application are one commit. The run learns of it at the commit. Keep such a
   * transaction short: the run cannot be written as long as it is open. A put that is refused leaves the transaction usable.
   */
  put(
    runId: RunId,
    entry: InboxEntry,
    options?: { readonly within?: PostgresClient | undefined },
  ): Promise<boolean>
}

/** How long deltas of a reply wait for more unless the ledger is given another time, in milliseconds. */
const deltaDelayMsUnlessGiven = 200

/**
 * A ledger in a schema of a Postgres database, created if missing. Any number of processes may drive runs, read them
 * and put commands into their inboxes. Connects at the first use.
 *
 * Throws a `ConfigurationError` if the options cannot work. Every use rejects with `LedgerUnavailableError`, before
 * anything is written, if the schema cannot be a ledger: it has other tables, or a ledger of a newer version.
 */
export function postgresLedger(options: PostgresLedgerOptions): PostgresLedger {
  digestNatively()
  const store = new PostgresStore(options)
  const { keys, deltaDelayMs = deltaDelayMsUnlessGiven } = options
  return Object.assign(openLedger(store, { keys, deltaDelayMs }), { horizon: () => store.horizon() })
}
