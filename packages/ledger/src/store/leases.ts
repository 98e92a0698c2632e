import type { Ledger, RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { isRunId } from '../format/event-row.ts'
import { getDatabase } from './store.ts'

export interface HeldLease {
  readonly runId: RunId
  readonly holder: string
  /** How long it lasts unless it is renewed, in milliseconds, by the store's clock. */
  readonly leftMs: number
}

/**
 * Lists the leases that last, those that end last first. What it costs depends on how many runs have something to do, not on
 * how many there are. Of a ledger from elsewhere it asks for the lease of each of the newest runs, ten times as many as `limit`.
 */
export async function listLeases(ledger: Ledger, limit: number): Promise<readonly HeldLease[]> {
  requireLedger('listLeases', ledger)
  requireOptions('listLeases', option.numberFrom(0, { whole: true }), limit, 'the most leases to list')
  const database = getDatabase(ledger)
  if (database === undefined) return await askForLeases(ledger, limit)
  const { now } = database
  const rows = await database.ask<{
    readonly run_id: string
    readonly lease_holder: string
    readonly left_ms: number
  }>(
    `select run_id, lease_holder, lease_until - ${now} as left_ms from @.run
      where due_at is not null and lease_until > ${now} order by lease_until desc, pos desc limit $1`,
    [limit],
  )
  return rows.flatMap(({ run_id: runId, lease_holder: holder, left_ms: leftMs }) =>
    isRunId(runId) ? [{ runId, holder, leftMs }] : [],
  )
}

async function askForLeases(ledger: Ledger, limit: number): Promise<readonly HeldLease[]> {
  const found: HeldLease[] = []
  for await (const { runId } of ledger.runs({ limit: 10 * limit })) {
    const lease = await ledger.lease(runId)
    if (lease) found.push({ runId, ...lease })
  }
  return found.sort((one, other) => other.leftMs - one.leftMs).slice(0, limit)
}
