import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError, LedgerDamagedError, memoryLedger, type RunId } from '@tallystick/core'
import {
  verifierKeyOf,
  verifyCheckpoints,
  verifyLedger,
  writeCheckpoint,
  type Checkpoint,
  type CheckpointsVerdict,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { commitmentOf, genesisHash, linkHash, sealOf } from '../src/chain.ts'
import { storedEvent, type EventRow } from '../src/event-row.ts'
import { tamper, withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { recorded, allVerified, type Recorded } from './support/recorded.ts'

const origin = 'example.com/agents'
const { privateKey, publicKey } = generateKeyPairSync('ed25519')

/** A ledger file with two runs, and where its checkpoints go. */
interface Kept extends Recorded {
  readonly file: string
  readonly sign: () => Promise<Checkpoint>
  readonly compared: () => Promise<CheckpointsVerdict>
}

async function kept(): Promise<Kept> {
  const { path, ...runs } = await recorded()
  const file = join(path, '..', 'checkpoints')
  const during = async <T>(work: (ledger: ReturnType<typeof sqliteLedger>) => Promise<T>): Promise<T> => {
    const ledger = sqliteLedger(path, { readOnly: true })
    try {
      return await work(ledger)
    } finally {
      await ledger.close()
    }
  }
  return {
    ...{ path, file, ...runs },
    sign: () => during((ledger) => writeCheckpoint(ledger, { file, key: privateKey, origin })),
    compared: () => during((ledger) => verifyCheckpoints(ledger, { file, publicKey })),
  }
}

/** A third run in a ledger file. */
async function another(path: string): Promise<RunId> {
  const ledger = sqliteLedger(path)
  const runId = await recordRun(ledger, 3)
  await ledger.close()
  return runId
}

/** Lets a run have said something else, and computes its chain and its seal anew, as somebody would who knows how. */
function rewrite(path: string, runId: RunId, change: (body: string) => string): void {
  tamper(path, (database) => {
    const rows = database
      .prepare<[string], EventRow>(
        'select * from event join payload using (pos) where run_id = ? order by seq',
      )
      .all(runId)
    let hash = genesisHash
    for (const row of rows) {
      const body = Buffer.from(change(Buffer.from(row.body as Uint8Array).toString()))
      const commit = commitmentOf(row.salt as Uint8Array, body)
      hash = linkHash(hash, storedEvent(row), commit)
      database.prepare('update payload set body = ? where pos = ?').run(body, row.pos)
      database.prepare('update event set body_commit = ?, hash = ? where pos = ?').run(commit, hash, row.pos)
    }
    const [first, last] = [rows[0] as EventRow, rows.at(-1) as EventRow]
    const cell = { runId, pos: first.pos, headSeq: last.seq, headHash: hash, epoch: last.epoch }
    const seal = sealOf(cell)
    database.prepare('update run set head_hash = ?, seal = ? where run_id = ?').run(hash, seal, runId)
  })
}

/** The answer of the run, as another one. */
const otherAnswer = (body: string): string => body.replaceAll('is yours.', 'is Bobs.')

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
        .prepare<[], string>(
          `select lower(hex(head_hash)) || ' ' || head_seq || ' ' || run_id from run order by pos`,
        )
        .pluck()
        .all(),
    )
    expect(heads.map((head) => head.split(' ')[2])).toEqual([runId, otherId])
    const id = verifierKeyOf(origin, publicKey).split('+')[1] ?? ''
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
      ...{ scope: 'checkpoints', ok: true, checkpoints: 1, runs: 2, events, broken: [] },
    })
  })

  it('add only the runs that are new or went on, and stand for all before', async () => {
    const { file, sign, compared, path, runId } = await kept()
    const first = await sign()
    const unchanged = readFileSync(file, 'utf8')
    expect(await sign()).toEqual({ ...first, added: 0 })
    expect(readFileSync(file, 'utf8')).toBe(unchanged)
    const third = await another(path)
    expect(await sign()).toMatchObject({ size: 3, added: 1 })
    const text = readFileSync(file, 'utf8')
    expect(text.startsWith(unchanged)).toBe(true)
    expect(text.slice(unchanged.length)).toMatch(new RegExp(`^heads 1\n[0-9a-f]{64} \\d+ ${third}\n\n`))
    expect(text.slice(unchanged.length)).not.toContain(runId)
    expect(await compared()).toMatchObject({ ok: true, checkpoints: 2, runs: 3 })
  })

  it('cover a run that goes on at every checkpoint, and a ledger without runs', async () => {
    const { path, file, sign, compared, runId } = await kept()
    await sign()
    const ledger = sqliteLedger(path)
    const { seq, epoch } = await ledger.acquire(runId)
    const last = (await Array.fromAsync(ledger.read(runId))).at(-1)
    const event = { ...last, type: 'limit_raised', seq: seq + 1, epoch, limit: 'turnsMax', max: 9, by: 'ada' }
    await ledger.append(runId, { expectedSeq: seq, epoch }, [event as never], { durability: 'barrier' })
    await ledger.close()
    expect(await sign()).toMatchObject({ size: 3, added: 1 })
    expect(await compared()).toMatchObject({ ok: true, checkpoints: 2, runs: 2 })
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
        expected: expect.stringMatching(/^[0-9a-f]{64}$/),
        found: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ])
    rewrite(path, runId, otherAnswer)
    expect((await compared()).broken.map((place) => place.runId)).toEqual([runId, otherId])
  })

  it('find events that were changed without a chain of their own, where they stand', async () => {
    const { path, sign, compared, runId } = await kept()
    await sign()
    tamper(path, (database) => {
      database.exec(
        `update payload set body = cast(replace(cast(body as text), 'Seoul', 'Busan') as blob)
         where pos = (select pos from event where run_id = '${runId}' and seq = 2)`,
      )
    })
    expect((await compared()).broken).toMatchObject([{ runId, seq: 2, what: 'payload', checkpoint: 1 }])
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
    await expect(sign()).rejects.toThrow(`Run ${third} is not there when its last checkpoint was made`)
    tamper(path, (database) => {
      database.exec(`delete from event where run_id = '${otherId}' and seq > 5`)
      database.exec(`update run set head_seq = 5 where run_id = '${otherId}'`)
    })
    expect((await compared()).broken).toMatchObject([
      { runId: otherId, seq: 6, what: 'event' },
      { runId: third, seq: 1, what: 'event' },
    ])
    await expect(sign()).rejects.toThrow(LedgerDamagedError)
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('are not made over a row that somebody has changed', async () => {
    const { path, file, sign, runId } = await kept()
    tamper(path, (database) => {
      database.exec(`update run set head_seq = 999 where run_id = '${runId}'`)
    })
    await expect(sign()).rejects.toThrow(`Run ${runId} has a row that is not what was written`)
    expect(existsSync(file)).toBe(false)
  })

  it('leave the claim of a ledger that went on behind them open', async () => {
    const { path, sign, compared } = await kept()
    await sign()
    const third = await another(path)
    rewrite(path, third, otherAnswer)
    // No checkpoint covers the run: nobody can tell.
    expect(await compared()).toMatchObject({ ok: true, runs: 2 })
  })
})

describe('a file of checkpoints', () => {
  async function changed(change: (text: string) => string): Promise<CheckpointsVerdict> {
    const { path, file, sign, compared } = await kept()
    await sign()
    await another(path)
    await sign()
    writeFileSync(file, change(readFileSync(file, 'utf8')))
    return await compared()
  }

  it('is found changed, line by line', async () => {
    const { path, file, sign, compared } = await kept()
    await sign()
    await another(path)
    await sign()
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    for (const [index, line] of lines.entries()) {
      if (line === '') continue
      const other = line.replace(/[0-9a-z](?=[^0-9a-z]*$)/, (last) => (last === '0' ? '1' : '0'))
      writeFileSync(file, `${lines.with(index, other).join('\n')}\n`)
      const { ok, broken, checkpoints } = await compared()
      expect({ index, ok, count: broken.length }).toEqual({ index, ok: false, count: 1 })
      expect(broken[0]).toMatchObject({ checkpoint: checkpoints + 1 })
      await expect(sign()).rejects.toThrow(LedgerDamagedError)
    }
  })

  it('is found out where heads were left out, moved or added, whoever has signed it', async () => {
    const without = await changed((text) => text.replace('heads 2', 'heads 1').replace(/\n\S+ \d+ \S+/, ''))
    expect(without.broken).toMatchObject([{ what: 'size', expected: '1', found: '2', checkpoint: 1 }])
    const moved = await changed((text) => text.replace(/\n(\S+ \d+ \S+)\n(\S+ \d+ \S+)/, '\n$2\n$1'))
    expect(moved.broken).toMatchObject([{ what: 'root', checkpoint: 1 }])
    expect(moved.broken[0]).not.toHaveProperty('runId')
    const once = await changed((text) => text.slice(text.lastIndexOf('heads')))
    expect(once.broken).toMatchObject([{ what: 'size', expected: '1', found: '3' }])
  })

  it('is of one key and one origin', async () => {
    const { path, file, sign } = await kept()
    await sign()
    const ledger = sqliteLedger(path, { readOnly: true })
    const stranger = generateKeyPairSync('ed25519')
    const as = (key: Parameters<typeof verifyCheckpoints>[1]['publicKey'], of?: string) =>
      verifyCheckpoints(ledger, { file, publicKey: key, ...(of !== undefined && { origin: of }) })
    expect((await as(stranger.publicKey)).broken).toMatchObject([{ what: 'signature', checkpoint: 1 }])
    expect((await as(publicKey, 'example.com/other')).broken).toMatchObject([
      { what: 'origin', expected: 'example.com/other', found: origin },
    ])
    expect(await as(verifierKeyOf(origin, publicKey))).toMatchObject({ ok: true })
    expect((await as(verifierKeyOf('example.com/other', publicKey))).ok).toBe(false)
    expect(await as(publicKey.export({ type: 'spki', format: 'pem' }) as string)).toMatchObject({ ok: true })
    await expect(writeCheckpoint(ledger, { file, key: stranger.privateKey, origin })).rejects.toThrow(
      'Use the key and the origin that the file was begun with',
    )
    await expect(
      writeCheckpoint(ledger, { file, key: privateKey, origin: 'example.com/other' }),
    ).rejects.toThrow(LedgerDamagedError)
    await ledger.close()
  })

  it('is carried on where its last checkpoint was cut off at any byte', async () => {
    const { path, file, sign, compared } = await kept()
    await sign()
    const first = readFileSync(file)
    await another(path)
    await sign()
    const whole = readFileSync(file)
    for (let length = first.length; length < whole.length; length += 3) {
      writeFileSync(file, whole.subarray(0, length))
      expect(await compared()).toMatchObject({ ok: true, checkpoints: 1 })
      expect(await sign()).toMatchObject({ size: 3, added: 1 })
      expect(readFileSync(file)).toEqual(whole)
    }
  })

  it('is never made out of a file of something else, or of nothing', async () => {
    const { path, file } = await kept()
    const ledger = sqliteLedger(path, { readOnly: true })
    for (const text of ['my notes', 'my notes\n', 'heads of state']) {
      writeFileSync(file, text)
      await expect(writeCheckpoint(ledger, { file, key: privateKey, origin })).rejects.toThrow(
        LedgerDamagedError,
      )
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
    await expect(verifyCheckpoints(ledger, { file: `${file}-absent`, publicKey })).rejects.toThrow(
      ConfigurationError,
    )
    for (const bad of ['', 'two words']) {
      const wrong = { file: `${file}-absent`, key: privateKey, origin: bad }
      await expect(writeCheckpoint(ledger, wrong)).rejects.toThrow(ConfigurationError)
    }
    expect(existsSync(`${file}-absent`)).toBe(false)
    await ledger.close()
    const memory = memoryLedger()
    await expect(writeCheckpoint(memory, { file, key: privateKey, origin })).rejects.toThrow(
      'keeps no chain of hashes',
    )
    await expect(verifyCheckpoints(memory, { file, publicKey })).rejects.toThrow(ConfigurationError)
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
