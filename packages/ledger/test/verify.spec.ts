import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { verifyLedger, verifyRun, type RunVerdict } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { lendWith, storeOf } from './support/lent-store.ts'
import { withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { allVerified, lastSeq, recorded, verified } from './support/recorded.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

describe('verify on a sound ledger', () => {
  it('finds every run and the store sound', async () => {
    const { path, runId, otherId } = await recorded()
    const counts = withRaw(
      path,
      (database) => [lastSeq(database, otherId), lastSeq(database, runId)] as const,
    )
    const { runs, store } = await allVerified(path)
    expect(runs).toEqual([
      { scope: 'run', runId: otherId, ok: true, events: counts[0] },
      { scope: 'run', runId, ok: true, events: counts[1] },
    ])
    expect(store).toEqual({
      scope: 'store',
      ok: true,
      runs: 2,
      brokenRuns: 0,
      droppedRuns: 0,
      events: counts[0] + counts[1],
    })
  })

  it('finds an empty ledger sound', async () => {
    const path = temporaryFile()
    await sqliteLedger(path).close()
    expect(await allVerified(path)).toEqual({
      runs: [],
      store: { scope: 'store', ok: true, runs: 0, brokenRuns: 0, droppedRuns: 0, events: 0 },
    })
  })

  it('verifies a ledger while its writer has it open, and while the run is not finished', async () => {
    const { path, runId } = await recorded()
    const ledger = sqliteLedger(path)
    await ledger.acquire(runId)
    expect(await verifyRun(ledger, runId)).toMatchObject({ ok: true })
    expect(await verified(path, runId)).toMatchObject({ ok: true })
    await ledger.close()
  })

  it('is not misled by a writer that appends while it reads', async () => {
    const runId = sampleRunId(1)
    const { run_started: start, input_received: input } = sampleFacts(runId)
    const [memory, file] = [memoryLedger(), sqliteLedger(emptyLedgerFile())]
    const append = async (ledger: Ledger): Promise<void> => {
      const { seq = 0, epoch = 1 } = (await ledger.head(runId)) ?? {}
      const next = stampFacts(runId, seq === 0 ? [start, input] : [input], { afterSeq: seq })
      await ledger.append(runId, { expectedSeq: seq, epoch }, next, { durability: 'lazy' })
    }
    const { database } = storeOf(file)
    let isAppended = false
    const busy: readonly Ledger[] = [
      {
        ...memory,
        async *read(id, range) {
          await append(memory)
          yield* memory.read(id, range)
        },
      },
      lendWith(file, {
        database: {
          ...database,
          async askBatch(text, order, values) {
            if (!isAppended) await append(file)
            isAppended = true
            return await database.askBatch(text, order, values)
          },
        },
      }),
    ]
    for (const ledger of busy) {
      await append(ledger)
      expect(await verifyRun(ledger, runId)).toEqual({ scope: 'run', runId, ok: true, events: 2 })
      expect(await ledger.head(runId)).toEqual({ seq: 3, epoch: 1 })
      await ledger.close()
    }
  })

  it('says of a run that is not there that it is not', async () => {
    const { path } = await recorded()
    await expect(verified(path, sampleRunId(9))).rejects.toThrow(
      `Run ${sampleRunId(9)} is not in this ledger`,
    )
  })

  it('checks the laws of a ledger that lends no rows', async () => {
    const ledger = memoryLedger()
    const runId = await recordRun(ledger)
    expect(await Array.fromAsync(verifyLedger(ledger))).toEqual([
      { scope: 'run', runId, ok: true, events: (await ledger.head(runId))?.seq },
      {
        scope: 'store',
        ok: true,
        runs: 1,
        brokenRuns: 0,
        droppedRuns: 0,
        events: (await ledger.head(runId))?.seq,
      },
    ])
  })
})

describe('verify on a list of runs that is damaged', () => {
  it('finds a listed run that is not there, and an id that no run can have, at their first event', async () => {
    const sound = memoryLedger()
    const runId = await recordRun(sound)
    const listed = [runId, 'no id' as RunId]
    const ledger: Ledger = {
      ...sound,
      async *runs() {
        for await (const run of sound.runs()) for (const each of listed) yield { ...run, runId: each }
      },
      head: () => Promise.resolve(undefined),
    }
    const broken = [
      { runId, seq: 1, what: 'run', expected: 'the run that is listed', found: 'none' },
      { runId: listed[1], seq: 1, what: 'run_id', expected: 'a run id', found: '"no id"' },
    ]
    expect(await Array.fromAsync(verifyLedger(ledger))).toEqual([
      ...broken.map((each) => ({ scope: 'run', runId: each.runId, ok: false, events: 0, broken: each })),
      { scope: 'store', ok: false, runs: 2, brokenRuns: 2, droppedRuns: 0, events: 0 },
    ])
  })
})

describe('verify on events that break a law', () => {
  const runId = sampleRunId(1)
  const facts = sampleFacts(runId)

  async function verdictOf(ledger: Ledger): Promise<RunVerdict> {
    const batch = stampFacts(runId, [facts.run_started, facts.input_received, facts.tool_result])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, batch, { durability: 'lazy' })
    return verifyRun(ledger, runId)
  }

  it.each(['in memory', 'in a file'])(
    'names the first, with what would have been legal, %s',
    async (place) => {
      const ledger = place === 'in memory' ? memoryLedger() : sqliteLedger(emptyLedgerFile())
      const { ok, events, broken } = await verdictOf(ledger)
      expect({ ok, events }).toEqual({ ok: false, events: 2 })
      expect(broken).toMatchObject({ runId, seq: 3, what: 'law 5' })
      expect(broken?.found).toContain('tool_result')
      expect(broken?.expected).toContain('model_call_started')
      await ledger.close()
    },
  )

  it('finds faults of a store that lends no rows: gaps, other runs, a second copy of a fact that is recorded once, a wrong head', async () => {
    const sound = memoryLedger()
    const id = await recordRun(sound)
    const events = await Array.fromAsync(sound.read(id))
    const result = events.findIndex(({ type }) => type === 'tool_result')
    const reading = (change: Partial<Ledger>): Ledger => ({ ...sound, ...change })
    const yielding = (changed: typeof events): Ledger =>
      reading({
        async *read() {
          yield* changed
        },
      })
    const broken = async (ledger: Ledger): Promise<unknown> => {
      const { broken: place } = await verifyRun(ledger, id)
      return place && [place.seq, place.what]
    }
    expect(await broken(yielding(events))).toBeUndefined()
    expect(await broken(yielding(events.toSpliced(result, 1)))).toEqual([result + 1, 'seq'])
    const foreign = events.with(result, {
      ...events[result],
      runId: sampleRunId(9),
    } as (typeof events)[number])
    expect(await broken(yielding(foreign))).toEqual([result + 1, 'seq'])
    const twice = events
      .toSpliced(result + 1, 0, events[result] as (typeof events)[number])
      .map((event, index) => ({ ...event, seq: index + 1 }))
    expect(await broken(yielding(twice))).toEqual([result + 2, `tool_result ${events[result]?.toolCallId}`])
    const head = { seq: events.length + 1, epoch: 1 }
    expect(await broken(reading({ head: async () => head }))).toEqual([events.length, 'head'])
    expect(await broken(reading({ head: async () => ({ seq: events.length, epoch: 0 }) }))).toEqual([
      events.length,
      'epoch of the head',
    ])
  })
})
