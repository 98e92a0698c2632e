import { join } from 'node:path'
import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { RunSummary } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { summarizeEndedRuns } from '../src/projection/ended-runs.ts'
import { getDatabase } from '../src/store/store.ts'
import { rowsPerBatch, type StoreDatabase } from '../src/store/database.ts'
import { forgeRun } from './support/forged-ledger.ts'
import { type Asked, lendWith, watchedDatabase } from './support/lent-store.ts'
import { tamper } from './support/raw-database.ts'
import { lastingFolder } from '../../../scripts/testing/temporary-folder.ts'

type Facts = Parameters<typeof stampFacts>[1]

const folder = lastingFolder()
let files = 0

/** A run of these facts between its start and its end. */
function ended(runId: RunId, facts: Facts): readonly RuntimeEvent[] {
  const { run_started, run_finished: end } = sampleFacts(runId)
  const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
  return stampFacts(runId, [start, ...facts, end])
}

/** A ledger on disk with runs of these facts; its file is changed while it is closed. */
async function stored(
  runs: readonly Facts[],
  spoil: (path: string, runIds: readonly RunId[]) => void = () => {},
): Promise<{ readonly ledger: Ledger; readonly runIds: readonly RunId[] }> {
  const path = join(folder, `${++files}.db`)
  const first = sqliteLedger(path)
  const runIds = runs.map((_, index) => sampleRunId(index + 1))
  for (const [index, facts] of runs.entries()) {
    const events = ended(runIds[index] as RunId, facts)
    await first.append(runIds[index] as RunId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  await first.close()
  spoil(path, runIds)
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return { ledger, runIds }
}

async function summaries(ledger: Ledger): Promise<readonly RunSummary[]> {
  return [...(await summarizeEndedRuns(ledger, await Array.fromAsync(ledger.runs()))).values()].toSorted(
    (a, b) => (a.runId < b.runId ? -1 : 1),
  )
}

/** Lets a test see what a ledger is asked, and change what it answers. */
function onAsk(
  ledger: Ledger,
  seen: <Row>(rows: readonly Row[], values: readonly unknown[]) => readonly Row[],
): void {
  const database = getDatabase(ledger) as StoreDatabase
  const answer = <Row>(rows: readonly Row[], { values }: Asked) => seen(rows, values)
  lendWith(ledger, { database: watchedDatabase(database, () => {}, answer) })
}

const { model_stream_failed: failed, agent_handed_off: handedOff, ...fact } = sampleFacts(sampleRunId(1))
const { limit_reached: reached, limit_raised: raised } = fact

describe('the summaries of runs that have ended', () => {
  it('given handoffs, when they are asked for, then they tell who had the conversation, and the limit that holds', async () => {
    const further = { ...handedOff, from: 'booking', to: 'paying' }
    const { ledger } = await stored([
      [reached, raised, handedOff, { ...reached, max: 12 }, further],
      [{ ...handedOff, to: 'paying' }],
    ])
    expect(await summaries(ledger)).toMatchObject([
      {
        agent: 'paying',
        agents: ['assistant', 'booking', 'paying'],
        waits: { limit: { limit: 'maxTurns', max: 12 } },
      },
      { agents: ['assistant', 'paying'] },
    ])
  })

  it('given a limit that was met, when it is raised, then the run waits for it no more, and for another one still', async () => {
    const cost = { ...reached, limit: 'maxCostUsd', max: 1 } as const
    const { ledger } = await stored([[reached], [reached, raised], [cost, raised], [cost], []])
    const waits = (await summaries(ledger)).map((run) => run.waits.limit)
    const { maxTurns, maxCostUsd } = fact.run_started.limits
    expect(waits).toEqual([
      { limit: 'maxTurns', max: maxTurns },
      undefined,
      { limit: 'maxCostUsd', max: maxCostUsd },
      { limit: 'maxCostUsd', max: maxCostUsd },
      undefined,
    ])
  })

  it('given child runs that have ended, when their parent is summed up, then they are counted with what they took', async () => {
    const { tool_result: result } = fact
    const of = (call: string, child?: { turns: number; toolCalls: number }): typeof result =>
      ({
        ...result,
        toolCallId: `${result.toolCallId.slice(0, -1)}${call}`,
        child: child && { ...result.child, ...child },
      }) as typeof result
    const { ledger } = await stored([
      [of('1', { turns: 2, toolCalls: 3 }), of('2'), of('3', { turns: 5, toolCalls: 7 })],
    ])
    expect(await summaries(ledger)).toMatchObject([{ children: { runs: 2, turns: 7, toolCalls: 10 } }])
  })

  it('given a run with many rows, when it is summed up, then they are read a batch at a time', async () => {
    const count = 2 * rowsPerBatch
    const { ledger } = await stored([Array.from({ length: count }, () => failed)])
    const batches: number[] = []
    const database = getDatabase(ledger) as StoreDatabase
    const askBatch = async (...asked: Parameters<StoreDatabase['askBatch']>) => {
      const rows = await database.askBatch(...asked)
      batches.push(rows.length)
      return rows
    }
    lendWith(ledger, { database: { ...database, askBatch } as StoreDatabase })
    expect(await summaries(ledger)).toMatchObject([{ failedAttempts: count }])
    expect(batches).toEqual([rowsPerBatch, rowsPerBatch, 2])
  })

  it('given an index that is out of order, when it is asked for, then its run is left to a fold', async () => {
    const { ledger } = await stored([Array.from({ length: rowsPerBatch }, () => failed)])
    const database = getDatabase(ledger) as StoreDatabase
    const askBatch = async (...[text, order, [runId]]: Parameters<StoreDatabase['askBatch']>) =>
      await database.askBatch(text, order, [runId, 0])
    lendWith(ledger, { database: { ...database, askBatch } as StoreDatabase })
    expect(await summaries(ledger)).toEqual([])
  })

  it('given a run that has grown since it was listed, when asked for, then it is left to a fold', async () => {
    const { ledger, runIds } = await stored([[], []])
    const listed = await Array.fromAsync(ledger.runs())
    const behind = listed.map((run) =>
      run.runId === runIds[0] ? { ...run, head: { ...run.head, seq: run.head.seq - 1 } } : run,
    )
    expect([...(await summarizeEndedRuns(ledger, behind)).keys()]).toEqual([runIds[1]])
    expect((await summarizeEndedRuns(ledger, [])).size).toBe(0)
  })

  it.each([
    ['was changed', "update event set body = '{}' where pos in (PLACE)"],
    [
      'has lost its content',
      "update event set body = '{}', salt = null, commitment = hash where pos in (PLACE)",
    ],
  ])('given an event that %s, when asked for, then its run is left to a fold', async (_, statement) => {
    for (const seq of [1, 2, 3]) {
      const { ledger, runIds } = await stored([[failed], [failed]], (path, [first]) =>
        tamper(path, (database) => {
          const place = `select pos from event where run_id = '${first}' and seq = ${seq}`
          database.exec(statement.replace('PLACE', place))
        }),
      )
      expect((await summaries(ledger)).map(({ runId }) => runId)).toEqual([runIds[1]])
    }
  })

  it('given an event of forged bytes that are no JSON, when asked for, then its run is left to a fold', async () => {
    const { ledger, runIds } = await stored([[failed], [failed]], (path, [first]) =>
      forgeRun(path, first as RunId, (event) =>
        event.type === 'model_stream_failed' ? { ...event, text: '{"failure":' } : event,
      ),
    )
    expect((await summaries(ledger)).map(({ runId }) => runId)).toEqual([runIds[1]])
  })

  it('given a store that cannot answer, when asked for, then every run is left to a fold; a fault in the code is thrown', async () => {
    const { ledger } = await stored([[failed]])
    const runs = await Array.fromAsync(ledger.runs())
    onAsk(ledger, () => {
      throw new TypeError('no such function')
    })
    await expect(summarizeEndedRuns(ledger, runs)).rejects.toThrow('no such function')
    await ledger.close()
    const closed = sqliteLedger(join(folder, `${files}.db`))
    await closed.close()
    expect((await summarizeEndedRuns(closed, runs)).size).toBe(0)
  })
})
