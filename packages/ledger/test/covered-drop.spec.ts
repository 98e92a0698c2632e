// What checkpoints say of a run that was dropped after they were signed.
import { applyRetention } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { kept, type Kept } from './support/kept-ledger.ts'
import { lastSeq } from './support/recorded.ts'
import { tamper, withRaw } from './support/raw-database.ts'

/** A ledger with two runs, signed, of which all were dropped then. */
async function dropped(): Promise<Kept & { readonly last: number }> {
  const ledger = await kept()
  await ledger.sign()
  const last = withRaw(ledger.path, (database) => lastSeq(database, ledger.runId))
  const open = sqliteLedger(ledger.path)
  await applyRetention(open, { factsMs: 0 }, { now: Date.UTC(2100, 0, 1) })
  await open.close()
  return { ...ledger, last }
}

describe('checkpoints of a run that was dropped', () => {
  it('given the hash that it ended with, when it is compared, then it is as it was signed, though no event is there', async () => {
    const { compared } = await dropped()
    expect(await compared()).toMatchObject({ ok: true, runs: 2, events: 0, broken: [] })
  })

  it('given another hash on record, when it is compared, then the checkpoint finds it', async () => {
    const { path, runId, compared, last } = await dropped()
    const other = 'a'.repeat(43)
    tamper(path, (database) =>
      database.prepare('update removal set digest = ? where run_id = ?').run(other, runId),
    )
    const { ok, broken } = await compared()
    expect(ok).toBe(false)
    expect(broken).toContainEqual(
      expect.objectContaining({ runId, seq: last, checkpoint: 1, what: 'hash', found: other }),
    )
  })

  it('given an end before the event that was signed, when it is compared, then the checkpoint finds it', async () => {
    const { path, runId, compared, last } = await dropped()
    tamper(path, (database) =>
      database.prepare('update removal set seq = seq - 1 where run_id = ?').run(runId),
    )
    expect((await compared()).broken).toContainEqual(
      expect.objectContaining({ runId, seq: last, checkpoint: 1, what: 'hash' }),
    )
  })

  it('given a removal of content only, when its events are gone as well, then the checkpoint misses them', async () => {
    const { path, runId, otherId, compared } = await dropped()
    tamper(path, (database) =>
      database.prepare(`update removal set kind = 'expired' where run_id = ?`).run(runId),
    )
    const { broken } = await compared()
    expect(broken).toEqual([
      {
        ...{ runId, seq: 1, checkpoint: 1, what: 'event' },
        ...{ expected: 'the event that was signed', found: 'none' },
      },
    ])
    expect(broken.some((each) => each.runId === otherId)).toBe(false)
  })
})
