import { readFileSync, writeFileSync } from 'node:fs'
import type { RunId } from '@tallystick/core'
import { verifyLedger, verifyRun, type RunVerdict, type StoreVerdict } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { Database } from 'better-sqlite3'
import { recordRun } from './record-run.ts'
import { emptyLedgerFile, temporaryFile } from './temporary-folder.ts'

/** A ledger file with two runs. */
export interface Recorded {
  readonly path: string
  readonly runId: RunId
  readonly otherId: RunId
}

/** Two runs that the real runtime drove, in a file of its own that is closed. */
export async function recorded(): Promise<Recorded> {
  made ??= make()
  const { bytes, ...runs } = await made
  const path = temporaryFile()
  writeFileSync(path, bytes)
  return { path, ...runs }
}

interface Made extends Omit<Recorded, 'path'> {
  readonly bytes: Buffer
}

/** The first test of this process that asks lets the runs be driven; every test gets a copy of the file. */
let made: Promise<Made> | undefined

async function make(): Promise<Made> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const runId = await recordRun(ledger, 1)
  const otherId = await recordRun(ledger, 2)
  await ledger.close()
  return { bytes: readFileSync(path), runId, otherId }
}

export async function verified(path: string, runId: RunId): Promise<RunVerdict> {
  const ledger = sqliteLedger(path, { readOnly: true })
  const verdict = await verifyRun(ledger, runId)
  await ledger.close()
  return verdict
}

/** The verdicts on every run of a file, and on the store around them. */
export async function allVerified(
  path: string,
): Promise<{ runs: readonly RunVerdict[]; store: StoreVerdict }> {
  const ledger = sqliteLedger(path, { readOnly: true })
  const verdicts = await Array.fromAsync(verifyLedger(ledger))
  await ledger.close()
  const store = verdicts.pop()
  if (store?.scope !== 'store') throw new Error('The last verdict is not that of the store.')
  return { runs: verdicts.filter((verdict) => verdict.scope === 'run'), store }
}

/** The number of a run's last event. */
export function lastSeq(database: Database, runId: RunId): number {
  const query = 'select max(seq) as seq from event where run_id = ?'
  return database.prepare<[string], { seq: number }>(query).get(runId)?.seq ?? 0
}
