// What verify finds in tables that follow from the events: every column, one change at a time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import { refreshed } from './support/compare-projections.ts'
import { longRun } from './support/long-run.ts'
import { differing } from './support/projection-bed.ts'
import { tamper } from './support/raw-database.ts'

let path: string
let ledger: Ledger

/** Two runs of one session, with what follows from them: one of them has a snapshot. */
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-audit-'))
  path = join(folder, 'runs.db')
  ledger = sqliteLedger(path)
  await longRun(ledger, 1, { sessionId: 'ann' })
  await foldTo(ledger, await longRun(ledger, 25, { seed: 2, sessionId: 'ann' }))
  await refreshed(ledger)
  return async () => {
    await ledger.close()
    rmSync(folder, { recursive: true })
  }
})

/** What verify finds to differ after a change, which is taken back. */
async function foundAfter(table: string, change: string): Promise<readonly string[]> {
  tamper(path, (file) => file.exec(`create table before as select * from ${table}; ${change}`))
  const found = await differing(ledger)
  tamper(path, (file) =>
    file.exec(`delete from ${table}; insert into ${table} select * from before; drop table before`),
  )
  return found
}

describe('verify', () => {
  it('finds nothing in projections and snapshots that are as their events say', async () => {
    expect(await differing(ledger)).toEqual([])
    const again = `update run_summary set summary = replace(summary, '{"runId"', '{ "runId"')`
    expect(await foundAfter('run_summary', again)).toEqual([])
    // A row that is missing is made anew.
    expect(await foundAfter('run_summary', 'delete from run_summary')).toEqual([])
  })

  const last = 'where pos = (select max(pos) from run_summary)'
  it.each([
    ['place', `update run_summary set pos = pos + 1000 ${last}`],
    ['event that is later', `update run_summary set seq = seq + 1 ${last}`],
    ['event that is earlier', `update run_summary set seq = seq - 1 ${last}`],
    ['hash', `update run_summary set head_hash = 'another' ${last}`],
    ['status', `update run_summary set status = 'failed' ${last}`],
    ['beginning', `update run_summary set started_at = started_at + 1 ${last}`],
    ['end', `update run_summary set last_at = last_at - 1 ${last}`],
    ['summary', `update run_summary set summary = replace(summary, 'answered', 'stopped') ${last}`],
    ['summary, cut off', `update run_summary set summary = '{' ${last}`],
    ['note', `update run_summary set notes = replace(notes, 'looker', 'somebody') ${last}`],
    ['session', `update run_summary set session_id = 'bob' ${last}`],
  ])('finds another %s of a run', async (_what, change) => {
    expect(await foundAfter('run_summary', change)).toContain('projection')
  })

  it.each([
    ['another agent', `update run_summary set agent = 'somebody' ${last}`],
    ['another term', `update run_summary set terms = replace(terms, 'looker', 'somebody') ${last}`],
    ['one term more', `update run_summary set terms = json_insert(terms, '$[#]', 'a somebody') ${last}`],
    ['one term less', `update run_summary set terms = json_remove(terms, '$[0]') ${last}`],
  ])('finds %s of a run', async (_what, change) => {
    expect(await foundAfter('run_summary', change)).toEqual(['projection'])
  })

  it('finds a run that its terms do not find', async () => {
    expect(await foundAfter('run_term', `delete from run_term where term like 'a %'`)).toContain('projection')
  })

  it('finds rows of runs that are not there', async () => {
    const gone = `update run_summary set run_id = 'nobody' ${last}`
    expect(await foundAfter('run_summary', gone)).toContain('projections of runs that are not there')
  })

  it.each([
    ['state', 'update snapshot set state = seal'],
    ['seal', 'update snapshot set seal = head_hash'],
    ['hash', 'update snapshot set head_hash = seal'],
    ['event that is earlier', 'update snapshot set seq = seq - 1'],
  ])('finds another %s of a snapshot', async (_what, change) => {
    expect(await foundAfter('snapshot', change)).toEqual([expect.stringMatching(/^snapshot at event \d+$/)])
  })

  it('finds a snapshot after the last event', async () => {
    expect(await foundAfter('snapshot', 'update snapshot set seq = seq + 1')).toEqual(['snapshot'])
  })
})
