import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { readLedgerStats, verifyLedger, type LedgerStats } from '@tallystick/ledger'
import { expect } from 'vitest'
import { recordRun } from './record-run.ts'

/** A store of its own for a test, opened as often as it likes. */
export interface ProjectionBed {
  readonly open: (options?: { readonly readOnly?: boolean }) => Ledger
  /** Changes rows as the owner of the store can. */
  readonly tamper: (statement: string) => Promise<void>
  readonly rows: (query: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Whether a check of all projections is quick: then every column is changed in turn, else every table. */
  readonly isQuick: boolean
  /** How the store carries a query out. */
  readonly plan: (text: string, values: readonly unknown[]) => Promise<string>
  /** Starts a process that brings the projections up to date again and again, until the test ends it. */
  readonly refresher: () => Promise<{ readonly end: () => Promise<number> }>
}

/** Stats of all runs at all times. */
export const everything = { since: 0, maxListed: 1000 }

/** Every event of a ledger, run by run, the newest run first. */
export async function everyRun(ledger: Ledger): Promise<readonly (readonly RuntimeEvent[])[]> {
  const runs: (readonly RuntimeEvent[])[] = []
  for await (const { runId } of ledger.runs()) runs.push(await Array.fromAsync(ledger.read(runId)))
  return runs
}

export async function recordSome(ledger: Ledger, count: number): Promise<readonly RunId[]> {
  const runIds: RunId[] = []
  for (let seed = 1; seed <= count; seed++) runIds.push(await recordRun(ledger, seed))
  return runIds
}

/** Returns the projections that verify finds to differ; the ledger itself has to be sound. */
export async function differing(ledger: Ledger): Promise<readonly string[]> {
  const verdicts = await Array.fromAsync(verifyLedger(ledger))
  expect(verdicts.filter(({ ok }) => !ok)).toEqual([])
  return verdicts.flatMap(({ differs }) => (differs ? [differs.what] : []))
}

/** The stats as the projections have them. */
export async function statsOf(ledger: Ledger): Promise<LedgerStats> {
  return await readLedgerStats(ledger, everything, { refresh: false })
}
