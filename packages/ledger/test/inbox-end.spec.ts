import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Ledger } from '@tallystick/core'
import { effort } from '../../../scripts/testing/effort.ts'
import { unheard } from './support/joining-cases.ts'
import { tamper } from './support/raw-database.ts'
import { recorded, verified } from './support/recorded.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

function open(path: string): Ledger {
  const ledger = sqliteLedger(path, {})
  onTestFinished(() => ledger.close())
  return ledger
}

describe('the inbox of a run that ends', () => {
  it('is read: input that joins from another process is heard, however close to the end it comes', async () => {
    const path = emptyLedgerFile()
    expect(await unheard(open(path), open(path), effort({ quick: 5, thorough: 20 }))).toEqual([])
  })

  it('is named by verify where it holds an unread entry', async () => {
    const { path, runId } = await recorded()
    tamper(path, (database) => {
      database
        .prepare(`insert into inbox (run_id, key, at, command) values (?, 'lost', 1, '{"type":"cancel"}')`)
        .run(runId)
    })
    const verdict = await verified(path, runId)
    expect(verdict).toMatchObject({ ok: false, broken: { what: 'law 15', found: '1 unread: "lost"' } })
  })
})
