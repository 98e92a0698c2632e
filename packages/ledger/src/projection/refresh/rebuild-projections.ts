import { ConfigurationError, LedgerUnavailableError, type Ledger } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { projectionDatabaseOf, type ProjectionDatabase } from '../tables/projection-database.ts'
import { dropProjections, dropSnapshots } from './drop-projections.ts'
import { refreshProjections, type OnProgress } from './refresh-projections.ts'

/** What projections were made from. */
export interface RebuildReport {
  readonly runs: number
  readonly events: number
}

/**
 * Drops everything that a store keeps beside its events, and makes projections of runs, sessions and totals anew from
 * them. Snapshots come back with the next long folds. Writers are not kept waiting.
 *
 * Rejects with a `ConfigurationError` for a ledger that keeps nothing of the kind, and with a `LedgerUnavailableError`
 * where it was opened with `readOnly`.
 */
export async function rebuildProjections(
  ledger: Ledger,
  folded: OnProgress = () => {},
): Promise<RebuildReport> {
  requireLedger('rebuildProjections', ledger)
  requireOptions('rebuildProjections', option.anyFunction, folded, 'what gets the progress')
  const database = requireProjections(ledger)
  await dropSnapshots(database)
  await dropProjections(database)
  let [runs, events] = [0, 0]
  await refreshProjections(ledger, database, (more) => {
    runs++
    events += more
    folded(more)
  })
  return { runs, events }
}

function requireProjections(ledger: Ledger): ProjectionDatabase {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) {
    throw new ConfigurationError(
      'This ledger keeps no projections, so there is nothing to rebuild: only sqliteLedger and postgresLedger do. ' +
        'Hand over the ledger itself, not something wrapped around it.',
    )
  }
  if (database.isWritable) return database
  throw new LedgerUnavailableError(
    'This ledger was opened with readOnly, so its projections were left as they are. Open it without readOnly to rebuild them.',
  )
}
