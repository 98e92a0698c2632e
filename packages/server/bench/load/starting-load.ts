import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { spreadOf, type Spread } from './figures.ts'
import { startServing, type Costs } from './serving.ts'
import { startAtRate } from './starts.ts'

/** How many runs start in a second, and for how long. */
export interface StartingPlan {
  readonly path: string
  readonly perSecond: number
  readonly seconds: number
}

/** What came of it. */
export interface StartingFigures {
  readonly runs: number
  /** Acknowledged starts a second, up to the last acknowledgement. */
  readonly perSecond: number
  /** From the request of a start to its acknowledgement. */
  readonly startMs: Spread
  readonly costs: Costs
  /** What is wrong: runs that are missing or not answered, and faults of the server. */
  readonly faults: readonly string[]
}

/** Starts runs at a rate over loopback, and holds the ledger to what was acknowledged. */
export async function playStarting({ path, perSecond, seconds }: StartingPlan): Promise<StartingFigures> {
  await using serving = await startServing(path, 0)
  const begun = performance.now()
  const started = await startAtRate(() => serving.place, { perSecond, count: perSecond * seconds, words: 1 })
  const took = (performance.now() - begun) / 1_000
  for (const { runId } of started.slice(-200)) await untilEnded(serving.place, runId)
  const costs = await serving.costs()
  await serving.kill()
  return {
    runs: started.length,
    perSecond: started.length / took,
    startMs: spreadOf(started.map(({ ms }) => ms)),
    costs,
    faults: [
      ...serving.faults,
      ...(await faultsOf(path, new Set(started.map(({ runId }) => runId)), started.length)),
    ],
  }
}

async function untilEnded(
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  runId: string,
): Promise<void> {
  await (await fetch(`${url}/runs/${runId}/result?waitMs=50000`, { headers })).text()
}

async function faultsOf(
  path: string,
  acknowledged: ReadonlySet<string>,
  count: number,
): Promise<readonly string[]> {
  const ledger = sqliteLedger(path)
  try {
    const faults: string[] = []
    let [runs, unended] = [0, 0]
    for await (const { runId, head } of ledger.runs()) {
      runs++
      if (!acknowledged.has(runId)) faults.push(`Run ${runId} was not acknowledged.`)
      for await (const { type } of ledger.read(runId, { fromSeq: head.seq }))
        if (type !== 'run_finished') unended++
    }
    if (acknowledged.size !== count || runs !== count) faults.push(`${count} starts made ${runs} runs.`)
    if (unended > 0) faults.push(`${unended} runs have not ended.`)
    return faults
  } finally {
    await ledger.close()
  }
}
