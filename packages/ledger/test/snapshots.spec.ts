import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ledger, type RunId, type RunState } from '@tallystick/core'
import { evolve, serializeState } from '@tallystick/core/machine'
import { foldTo, readRunSummary, verifyLedger, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { redact } from '../src/store/redact.ts'
import { sealSnapshot, encodeSnapshot } from '../src/projection/snapshots.ts'
import { getDatabase } from '../src/store/store.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { snapshotVersion } from '../src/projection/snapshots.ts'
import { refreshed } from './support/compare-projections.ts'
import { GrownLedger } from './support/grown-ledger.ts'
import { longRun } from './support/long-run.ts'
import { filesBeside, tamper, withRaw } from './support/raw-database.ts'
import { rewrite } from './support/kept-ledger.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

interface SnapshotRow {
  readonly run_id: string
  readonly reducer: string
  readonly seq: number
  readonly state: string
  readonly head_hash: string
}

function open(path: string, readOnly = false): Ledger {
  const ledger = sqliteLedger(path, { readOnly })
  onTestFinished(() => ledger.close())
  return ledger
}

let folder: string
let recorded: { readonly path: string; readonly runId: RunId }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-snapshots-'))
  recorded = await recordedIn(join(folder, 'runs.db'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Records a run of 40 turns, and folds it nowhere. */
async function recordedIn(path: string, options?: Parameters<typeof longRun>[2]): Promise<typeof recorded> {
  const ledger = sqliteLedger(path)
  const runId = await longRun(ledger, 40, options)
  await ledger.close()
  return { path, runId }
}

/** A ledger file with that run, for one test. */
function longLedger(): typeof recorded {
  const path = temporaryFile()
  copyFileSync(recorded.path, path)
  return { ...recorded, path }
}

function snapshotsIn(path: string): readonly SnapshotRow[] {
  return withRaw(path, (database) =>
    database.prepare<[], SnapshotRow>('select * from snapshot order by run_id, seq').all(),
  )
}

/** The state by the events alone. */
async function folded(ledger: Ledger, runId: RunId, toSeq?: number): Promise<RunState> {
  let state: RunState | undefined
  for await (const event of ledger.read(runId, toSeq === undefined ? {} : { toSeq }))
    state = evolve(state, event)
  if (state === undefined) throw new Error('The run has no events.')
  return state
}

/** From which event on a fold reads, and what it comes to. */
async function foldingFrom(
  ledger: Ledger,
  runId: RunId,
  seq?: number,
  options?: Parameters<typeof foldTo>[3],
): Promise<{ readonly fromSeq: number | undefined; readonly state: RunState }> {
  const read = vi.spyOn(ledger, 'read')
  const state = await foldTo(ledger, runId, seq, options)
  const fromSeq = read.mock.calls.at(-1)?.[1]?.fromSeq
  read.mockRestore()
  return { fromSeq, state }
}

describe('a fold that comes far', () => {
  it('keeps the state, and the next one reads only what follows it', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    const { seq } = (await ledger.head(runId))!
    expect(seq).toBeGreaterThan(300)
    const [first, second] = [await foldingFrom(ledger, runId), await foldingFrom(ledger, runId)]
    expect([first.fromSeq, second.fromSeq]).toEqual([1, seq + 1])
    expect(second.state).toStrictEqual(await folded(ledger, runId))
    expect(first.state).toStrictEqual(second.state)
    const middle = await foldingFrom(ledger, runId, 250)
    expect(middle).toEqual({ fromSeq: 1, state: await folded(ledger, runId, 250) })
    expect(snapshotsIn(path).map((row) => row.seq)).toEqual([seq])
  })

  it('hands out the events that it folds: all, or those after its snapshot', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    const handedOut = async (seq: number): Promise<readonly number[]> => {
      const seqs: number[] = []
      await foldTo(ledger, runId, seq, { onEvent: (event) => void seqs.push(event.seq) })
      return seqs
    }
    expect(await handedOut(250)).toEqual(Array.from({ length: 250 }, (_, index) => index + 1))
    expect(await handedOut(252)).toEqual([251, 252])
    expect(await handedOut(250)).toEqual([])
  })

  it('goes by the events alone where that is asked for', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    await foldTo(ledger, runId)
    const { fromSeq, state } = await foldingFrom(ledger, runId, undefined, { snapshots: false })
    expect(fromSeq).toBe(1)
    expect(state).toStrictEqual(await folded(ledger, runId))
  })

  it('leaves nothing where the ledger was opened to read, and uses what is there', async () => {
    const { path, runId } = longLedger()
    const before = filesBeside(path)
    const reader = sqliteLedger(path, { readOnly: true })
    await foldTo(reader, runId)
    await reader.close()
    expect(filesBeside(path)).toEqual(before)
    const writer = sqliteLedger(path)
    const { seq } = await foldTo(writer, runId)
    await writer.close()
    expect((await foldingFrom(open(path, true), runId)).fromSeq).toBe(seq + 1)
  })
})

describe('a snapshot that is not as it was written', () => {
  const changes: Readonly<Record<string, string>> = {
    'of other code': `update snapshot set reducer = 'another'`,
    'of another history': `update snapshot set head_hash = 'another'`,
    'at another event': `update snapshot set seq = seq - 1`,
    'whose bytes have changed': `update snapshot set state = replace(state, 'All is well', 'All is lost')`,
    'that was cut off': `update snapshot set state = substr(state, 1, 100)`,
    'whose seal has changed': `update snapshot set seal = 'another'`,
    'of another run': `update snapshot set run_id = 'elsewhere'`,
  }
  it.each(Object.entries(changes))(
    '%s is left aside, and another comes in its place',
    async (_how, change) => {
      const { path, runId } = longLedger()
      const ledger = open(path)
      await foldTo(ledger, runId)
      withRaw(path, (database) => expect(database.prepare(change).run().changes).toBe(1))
      const { fromSeq, state } = await foldingFrom(ledger, runId)
      expect(fromSeq).toBe(1)
      expect(state).toStrictEqual(await folded(ledger, runId))
      expect((await foldingFrom(ledger, runId)).fromSeq).toBe(state.seq + 1)
      expect(snapshotsIn(path).filter((row) => row.reducer === 'another')).toEqual([])
    },
  )

  it('is not used for a history that was rewritten, chain and all', async () => {
    const { path, runId } = longLedger()
    const first = sqliteLedger(path)
    await foldTo(first, runId)
    await first.close()
    rewrite(path, runId, (body) => body.replaceAll('!', '?'))
    const ledger = open(path)
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    const { fromSeq, state } = await foldingFrom(ledger, runId)
    expect([fromSeq, state.lastText]).toEqual([1, 'All is well?'])
  })
})

describe('the state that a snapshot holds', () => {
  it('given another one under a seal that fits, when the run is verified, then verify finds it', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    const { totals } = await foldTo(ledger, runId, 250)
    expect(totals.toolCalls).toBeGreaterThan(0)
    expect((await verifyRun(ledger, runId)).differs).toBeUndefined()
    tamper(path, (database) => {
      const row = database.prepare<[], SnapshotRow>('select * from snapshot').get() as SnapshotRow
      const state = row.state.replace(`"toolCalls":${totals.toolCalls}`, '"toolCalls":9999')
      const seal = sealSnapshot(runId, { seq: row.seq, headHash: row.head_hash, state })
      database.prepare('update snapshot set state = ?, seal = ?').run(state, seal)
    })
    expect((await foldTo(ledger, runId, 250)).totals.toolCalls).toBe(9999)
    expect(await verifyRun(ledger, runId)).toMatchObject({
      ...{ ok: true, differs: { what: 'snapshot at event 250' } },
    })
  })
})

describe('snapshots near an event', () => {
  it('that were forged, seal and all, cost only time', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    const done = await foldTo(ledger, runId, undefined, { snapshots: false })
    tamper(path, (database) => {
      const headHash = database
        .prepare<[string], string>('select hash from event where run_id = ? and seq = 212')
        .pluck()
        .get(runId) as string
      const bare = {
        seq: 212,
        state: encodeSnapshot({ ...done, seq: 212 }, []),
        headHash,
      }
      database
        .prepare('insert into snapshot values (?, ?, ?, ?, ?, ?)')
        .run(runId, snapshotVersion, 212, bare.state, headHash, sealSnapshot(runId, bare))
    })
    const read = vi.spyOn(ledger, 'read')
    const state = await foldTo(ledger, runId, 250)
    expect(read.mock.calls.map(([, range]) => range)).toEqual([
      { fromSeq: 213, toSeq: 250 },
      { fromSeq: 1, toSeq: 250 },
    ])
    expect(state).toStrictEqual(await folded(ledger, runId, 250))
    read.mockRestore()
    // Counts of what a run did are not taken twice from the events that were read twice.
    const calls = [{ name: 'look', outcome: 'success', count: 39 }]
    expect(await readRunSummary(ledger, runId)).toMatchObject({ calls })
  })

  it('are not left aside where the function that gets the events throws', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    await foldTo(ledger, runId, 200)
    const stop = new Error('enough')
    const seqs: number[] = []
    const folding = foldTo(ledger, runId, 250, {
      onEvent({ seq }) {
        seqs.push(seq)
        throw stop
      },
    })
    await expect(folding).rejects.toBe(stop)
    expect(seqs).toEqual([201])
  })

  it('after the last event that a projection tells of, spare its fold the events before them', async () => {
    const { path, runId } = longLedger()
    const source = open(path)
    const events = await Array.fromAsync(source.read(runId))
    const ledger = open(emptyLedgerFile())
    const grown = new GrownLedger([events])
    await grown.grow(ledger, 0, 100)
    await refreshed(ledger)
    await grown.grow(ledger, 0, 150)
    await foldTo(ledger, runId)
    await grown.grow(ledger, 0, events.length)
    const read = vi.spyOn(ledger, 'read')
    await refreshed(ledger)
    expect(read.mock.calls.map(([, range]) => range?.fromSeq)).toEqual([101])
    read.mockRestore()
    const calls = [{ name: 'look', outcome: 'success', count: 39 }]
    expect(await readRunSummary(ledger, runId)).toMatchObject({ calls, seq: events.length })
    const verdicts = await Array.fromAsync(verifyLedger(ledger))
    expect(verdicts.filter(({ ok, differs }) => !ok || differs)).toEqual([])
  })

  it('are not looked for where every event of a run is read anyway', async () => {
    const { path } = longLedger()
    const ledger = open(path)
    const database = getDatabase(ledger) as StoreDatabase
    const ask = vi.spyOn(database, 'ask')
    await refreshed(ledger)
    expect(ask.mock.calls.filter(([text]) => text.includes('snapshot.seal'))).toEqual([])
    ask.mockRestore()
  })
})

describe('a run that began with what its session had said', () => {
  it('keeps that once: its snapshots tell how much of it they share', async () => {
    const path = temporaryFile()
    const ledger = open(path)
    await longRun(ledger, 2, { sessionId: 'ann' })
    const runId = await longRun(ledger, 30, { seed: 2, sessionId: 'ann' })
    const { seq } = (await ledger.head(runId))!
    const carriedIn = (): readonly unknown[] =>
      snapshotsIn(path).map(({ state }) => {
        const { history } = JSON.parse(state) as { history: { carried: number } }
        return history.carried
      })
    await foldTo(ledger, runId, 205)
    const first = carriedIn()
    expect(first).toEqual([expect.any(Number)])
    expect(Number(first[0])).toBeGreaterThan(0)
    const read = vi.spyOn(ledger, 'read')
    const state = await foldTo(ledger, runId)
    expect(read.mock.calls.map(([, range]) => range)).toEqual([{ toSeq: 2 }, { fromSeq: 206, toSeq: seq }])
    read.mockRestore()
    const due = serializeState(await folded(ledger, runId))
    expect(serializeState(state)).toStrictEqual(due)
    expect(carriedIn()).toEqual(first)
    expect(serializeState((await foldingFrom(ledger, runId)).state)).toStrictEqual(due)
    expect(await verifyRun(ledger, runId)).toEqual({ scope: 'run', runId, ok: true, events: seq })
  })
})

describe('what is taken away', () => {
  it('takes the snapshots of its run along, and is in none that a fold leaves which had begun before', async () => {
    const { path, runId } = longLedger()
    const ledger = open(path)
    await foldTo(ledger, runId)
    const other = sqliteLedger(path)
    const reading = ledger.read.bind(ledger)
    vi.spyOn(ledger, 'read').mockImplementationOnce(async function* (...range) {
      yield* reading(...range)
      await redact(other, runId, [2], { by: 'ann', reason: 'asked for' })
    })
    await foldTo(ledger, runId, 240, { snapshots: true })
    expect(snapshotsIn(path)).toEqual([])
    await other.close()
    const { removedFrom } = await foldTo(ledger, runId)
    expect(removedFrom).toBe(2)
    expect(snapshotsIn(path)).toEqual([])
  })

  it('can be all that was said about a person: of such runs there are no snapshots', async () => {
    const { path, runId } = await recordedIn(emptyLedgerFile(), { subject: 'ann' })
    const ledger = open(path)
    const { fromSeq } = (await foldTo(ledger, runId), await foldingFrom(ledger, runId))
    expect(fromSeq).toBe(1)
    expect(snapshotsIn(path)).toEqual([])
  })
})

describe('a database whose snapshots cannot be used', () => {
  it('is folded from its events', async () => {
    const { path, runId } = longLedger()
    tamper(path, (database) => database.exec('drop table snapshot'))
    const ledger = open(path)
    expect(await foldTo(ledger, runId)).toStrictEqual(await folded(ledger, runId))
  })
})
