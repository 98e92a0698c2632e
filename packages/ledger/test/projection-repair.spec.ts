// What becomes of rows of projections that are not as they were written, and of a refresh that others are in the way of.
import { LedgerUnavailableError } from '@tallystick/core'
import { foldTo, readLedgerStats, countProjectionLag, rebuildProjections } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { rewrite } from './support/kept-ledger.ts'
import { longRun } from './support/long-run.ts'
import { differing, everything, recordSome, statsOf } from './support/projection-bed.ts'
import { recordRun } from './support/record-run.ts'
import { openedProjections as opened, watched } from './support/watched-projections.ts'

describe('rows of projections that are not as they were written', () => {
  it.each([
    ['whose run has another end', `update run_summary set head_hash = 'another'`],
    ['that tell of fewer events', `update run_summary set seq = seq - 1`],
  ])('%s are made anew', async (_which, statement) => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    const sound = await statsOf(ledger)
    change(statement)
    expect(await differing(ledger)).toContain('projection')
    await refresh()
    expect(await differing(ledger)).toEqual([])
    expect(await statsOf(ledger)).toEqual(sound)
  })

  it('that cannot be read tell nothing: their runs do', async () => {
    const { ledger, refresh, reader, tamper: change } = opened()
    await recordSome(ledger, 3)
    await refresh()
    const sound = await statsOf(ledger)
    change(`update run_summary set summary = '{' where pos = 1`)
    expect(await readLedgerStats(reader(), everything)).toEqual(sound)
    expect(await differing(ledger)).toEqual(['projection'])
    await rebuildProjections(ledger)
    expect(await statsOf(ledger)).toEqual(sound)
    expect(await differing(ledger)).toEqual([])
  })

  it('of a run that was rewritten, chain and all, are made anew from its first event', async () => {
    const { path, ledger, refresh } = opened()
    const runId = await recordRun(ledger)
    await refresh()
    rewrite(path, runId, (body) => body.replaceAll('"outputTokens":17', '"outputTokens":18'))
    await refresh()
    expect((await statsOf(ledger)).spending).toMatchObject([{ calls: 2, usage: { outputTokens: 36 } }])
  })

  it('that were all deleted come back, with what lets folds leave snapshots', async () => {
    const { ledger, refresh, rows, tamper: change } = opened()
    const runId = await longRun(ledger, 25)
    await refresh()
    const sound = await statsOf(ledger)
    change(`delete from projection; delete from snapshot`)
    expect((await foldTo(ledger, runId)).phase).toBe('done')
    expect(rows('select seq from snapshot')).toEqual([])
    expect(await countProjectionLag(ledger)).toBe((await ledger.head(runId))?.seq)
    expect(await statsOf(ledger)).toEqual(sound)
    await refresh()
    expect(await countProjectionLag(ledger)).toBe(0)
    expect(await statsOf(ledger)).toEqual(sound)
    await foldTo(ledger, runId)
    expect(rows('select seq from snapshot')).toHaveLength(1)
  })
})

describe('projections beside other processes', () => {
  it('are read again where another one was quicker, and given up after fifty times', async () => {
    const { ledger, database, refresh } = opened()
    await recordSome(ledger, 1)
    await refresh()
    await recordRun(ledger, 2)
    const change = database.change.bind(database)
    let tries = 0
    Object.assign(database, {
      change: (...given: Parameters<typeof change>) =>
        tries++ === 0 ? Promise.resolve(false) : change(...given),
    })
    await refresh()
    expect(tries).toBe(3)
    expect((await statsOf(ledger)).counts.done).toBe(2)
    expect(await countProjectionLag(ledger)).toBe(0)
    await recordRun(ledger, 3)
    tries = 0
    Object.assign(database, { change: () => Promise.resolve(++tries < 0) })
    await expect(refresh()).rejects.toThrow(LedgerUnavailableError)
    await expect(refresh()).rejects.toThrow('other processes change them again and again')
    expect(tries).toBe(100)
  })

  it('stay as they are where the new events cannot be read', async () => {
    const { ledger, database, refresh } = opened()
    await recordSome(ledger, 1)
    await refresh()
    const { made } = watched(database)
    Object.assign(database, { query: () => Promise.reject(new LedgerUnavailableError('out of reach')) })
    await expect(refresh()).rejects.toThrow('out of reach')
    expect(made).toEqual([])
  })
})
