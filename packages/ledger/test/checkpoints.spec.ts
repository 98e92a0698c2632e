import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LedgerDamagedError } from '@tallystick/core'
import {
  formatVerifierKey,
  verifyCheckpoints,
  verifyLedger,
  writeCheckpoint,
  applyRetention,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import {
  another,
  kept,
  origin,
  otherAnswer,
  privateKey,
  publicKey,
  rewrite,
  type Kept,
} from './support/kept-ledger.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { allVerified, lastSeq } from './support/recorded.ts'

describe('checkpoints', () => {
  it('cover where every run ends, as notes that others can read', async () => {
    const { file, sign, compared, runId, otherId, path } = await kept()
    const { note, ...checkpoint } = await sign()
    expect(checkpoint).toEqual({
      origin,
      size: 2,
      root: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/),
      added: 2,
    })
    const lines = readFileSync(file, 'utf8').split('\n')
    const heads = withRaw(path, (database) =>
      database
        .prepare<[], string>(`select head_hash || ' ' || head_seq || ' ' || run_id from run order by pos`)
        .pluck()
        .all(),
    )
    expect(heads.map((head) => head.split(' ')[2])).toEqual([runId, otherId])
    const id = formatVerifierKey(origin, publicKey).split('+')[1] ?? ''
    expect(lines).toEqual([
      ...['heads 2', ...heads, ''],
      ...[origin, '2', checkpoint.root, ''],
      ...[expect.stringMatching(/^\u2014 example\.com\/agents [A-Za-z0-9+/]{91}=$/), '', ''],
    ])
    expect(note).toBe(`${lines.slice(4, -2).join('\n')}\n`)
    const signature = Buffer.from(note.split(' ')[2] ?? '', 'base64')
    expect(signature.subarray(0, 4).toString('hex')).toBe(id)
    const events = heads.reduce((sum, head) => sum + Number(head.split(' ')[1]), 0)
    expect(await compared()).toEqual({
      ...{ scope: 'checkpoints', ok: true, origin, checkpoints: 1, runs: 2, events, broken: [] },
    })
  })

  it('add only the runs that are new or continued, and stand for all before', async () => {
    const { file, sign, compared, path, runId } = await kept()
    const first = await sign()
    const unchanged = readFileSync(file, 'utf8')
    expect(await sign()).toEqual({ ...first, added: 0 })
    expect(readFileSync(file, 'utf8')).toBe(unchanged)
    const third = await another(path)
    expect(await sign()).toMatchObject({ size: 3, added: 1 })
    const text = readFileSync(file, 'utf8')
    expect(text.startsWith(unchanged)).toBe(true)
    expect(text.slice(unchanged.length)).toMatch(new RegExp(`^heads 1\n[\\w-]{43} \\d+ ${third}\n\n`))
    expect(text.slice(unchanged.length)).not.toContain(runId)
    expect(await compared()).toMatchObject({ ok: true, checkpoints: 2, runs: 3 })
  })

  it('cover a run that continues at every checkpoint, and a ledger without runs', async () => {
    const { path, file, sign, compared, runId } = await kept()
    await sign()
    const before = `${path}.before`
    copyFileSync(path, before)
    const ledger = sqliteLedger(path)
    const { seq, epoch } = await ledger.acquire(runId)
    const last = (await Array.fromAsync(ledger.read(runId))).at(-1)
    const event = { ...last, type: 'limit_raised', seq: seq + 1, epoch, limit: 'maxTurns', max: 9, by: 'ada' }
    await ledger.append(runId, { expectedSeq: seq, epoch }, [event as never], { durability: 'barrier' })
    await ledger.close()
    expect(await sign()).toMatchObject({ size: 3, added: 1 })
    expect(await compared()).toMatchObject({ ok: true, checkpoints: 2, runs: 2 })
    // An earlier state of the ledger, sound in itself, is not what was signed last.
    copyFileSync(before, path)
    expect((await compared()).broken).toMatchObject([
      { runId, seq: seq + 1, what: 'event', found: 'none', checkpoint: 2 },
    ])
    await expect(sign()).rejects.toThrow(
      `Run ${runId} ends at event ${seq}, and its last checkpoint signed event ${seq + 1}, so`,
    )
    const empty = sqliteLedger(join(path, '..', 'empty.db'))
    const emptyFile = `${file}-empty`
    expect(await writeCheckpoint(empty, { file: emptyFile, key: privateKey, origin })).toMatchObject({
      ...{ size: 0, added: 0, root: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' },
    })
    expect(await verifyCheckpoints(empty, { file: emptyFile, publicKey })).toMatchObject({
      ...{ ok: true, checkpoints: 1, runs: 0 },
    })
    await empty.close()
  })

  it('find a rewritten history that the chain alone would pass, and name the run and the checkpoint', async () => {
    const { path, sign, compared, runId, otherId } = await kept()
    await sign()
    await another(path)
    await sign()
    rewrite(path, otherId, otherAnswer)
    const { runs, store } = await allVerified(path)
    expect([store.ok, ...runs.map(({ ok }) => ok)]).toEqual([true, true, true, true])
    const verdict = await compared()
    expect(verdict).toMatchObject({ ok: false, checkpoints: 2, runs: 3 })
    expect(verdict.broken).toEqual([
      {
        ...{ runId: otherId, checkpoint: 1, what: 'hash' },
        seq: runs.find((run) => run.runId === otherId)?.events,
        expected: expect.stringMatching(/^[\w-]{43}$/),
        found: expect.stringMatching(/^[\w-]{43}$/),
      },
    ])
    rewrite(path, runId, otherAnswer)
    expect((await compared()).broken.map((place) => place.runId)).toEqual([runId, otherId])
  })

  it('find events that were changed without a chain of their own, at their place', async () => {
    const { path, sign, compared, runId } = await kept()
    await sign()
    tamper(path, (database) => {
      database.exec(
        `update event set body = replace(body, 'Seoul', 'Busan') where run_id = '${runId}' and seq = 2`,
      )
    })
    expect((await compared()).broken).toMatchObject([{ runId, seq: 2, what: 'hash', checkpoint: 1 }])
  })

  it('find a run that was removed and one that was cut back, and refuse to be made over them', async () => {
    const { path, file, sign, compared, otherId } = await kept()
    const before = `${path}.before`
    copyFileSync(path, before)
    const third = await another(path)
    await sign()
    copyFileSync(before, path)
    expect((await compared()).broken).toMatchObject([
      { runId: third, seq: 1, what: 'event', found: 'none', checkpoint: 1 },
    ])
    const text = readFileSync(file, 'utf8')
    await expect(sign()).rejects.toThrow(
      `Run ${third} is missing, so this ledger is not what the checkpoints signed`,
    )
    tamper(path, (database) => {
      database.exec(`delete from event where run_id = '${otherId}' and seq > 4`)
      database.exec(`update run set head_seq = 4 where run_id = '${otherId}'`)
    })
    expect((await compared()).broken).toMatchObject([
      { runId: otherId, seq: 5, what: 'event' },
      { runId: third, seq: 1, what: 'event' },
    ])
    await expect(sign()).rejects.toThrow(LedgerDamagedError)
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('are not made over a changed row', async () => {
    const { path, file, sign, runId } = await kept()
    tamper(path, (database) => {
      database.exec(`update run set head_seq = 999 where run_id = '${runId}'`)
    })
    await expect(sign()).rejects.toThrow(`Run ${runId} has a row that differs from what was written`)
    expect(existsSync(file)).toBe(false)
  })

  it('leave the claim of a ledger with later events open', async () => {
    const { path, sign, compared } = await kept()
    await sign()
    const third = await another(path)
    rewrite(path, third, otherAnswer)
    // No checkpoint covers the run, so this cannot be known.
    expect(await compared()).toMatchObject({ ok: true, runs: 2 })
  })

  it('says nothing of laws: verify does, and both find a run sound', async () => {
    const { path, sign, compared } = await kept()
    await sign()
    const ledger = sqliteLedger(path, { readOnly: true })
    const counts = await Array.fromAsync(verifyLedger(ledger), ({ events }) => events)
    await ledger.close()
    expect((await compared()).events).toBe(counts.at(-1))
  })
})

// What checkpoints say of a run that was dropped after they were signed.

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
