import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import type { Engine } from '@tallystick/engines'
import { contractOf, type OpenSite, type RunsHarness } from '@tallystick/engines/contract'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, test } from 'vitest'
import { effort } from '../../../../scripts/testing/effort.ts'
import { writeEmptyLedger } from '../../../../scripts/testing/empty-ledger.ts'

/** The engine of a process, and what closes it. */
export interface OpenedEngine {
  readonly engine: Engine
  readonly close?: () => Promise<void>
}

/** Opens the engine of one process. The queue has that name, and is new with it. */
type OpenEngine = (ledger: Ledger, name: string) => OpenedEngine | Promise<OpenedEngine>

/** A site whose runs are in a file of SQLite. */
export function sqliteSite(openEngine: OpenEngine): Promise<OpenSite> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-runs-'))
  const path = join(folder, 'runs.db')
  writeEmptyLedger(path)
  return Promise.resolve(
    makeSite(
      () => sqliteLedger(path),
      openEngine,
      () => rmSync(folder, { recursive: true, force: true }),
    ),
  )
}

/** A site whose runs are in a schema of Postgres. */
export function postgresSite(connectionString: string, openEngine: OpenEngine): Promise<OpenSite> {
  const schema = `runs_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  return Promise.resolve(
    makeSite(() => postgresLedger({ connectionString, schema, maxConnections: 4 }), openEngine),
  )
}

function makeSite(openLedger: () => Ledger, openEngine: OpenEngine, remove?: () => void): OpenSite {
  const name = `tallystick-${randomUUID()}`
  const closing: (() => Promise<void>)[] = []
  return {
    async open() {
      const ledger = openLedger()
      closing.unshift(() => ledger.close())
      const { engine, close } = await openEngine(ledger, name)
      if (close) closing.unshift(close)
      return { ledger, engine }
    },
    async close() {
      for (const close of closing) await close()
      remove?.()
    },
  }
}

/** Plays the contract about runs. Cases mostly wait, each on a site of its own. */
export function playRuns(harness: RunsHarness): void {
  const chance = effort({ quick: { rounds: 5 }, thorough: { rounds: 20, limitMs: 240_000 } })
  test.concurrent.for(contractOf.runs({ ...chance, ...harness }))(
    '$promise',
    async ({ lacks, run }, { skip }) => {
      if (lacks !== undefined) skip(`the engine is not capable of ${lacks}`)
      await expect(run()).resolves.toBeUndefined()
    },
  )
}
