import { createHash } from 'node:crypto'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { spreadOf, type Spread } from './figures.ts'
import { followRun, type Reading } from './reader.ts'
import { startServing, type Costs, type Place } from './serving.ts'
import { startMany } from './starts.ts'

/** How many follow what, and whether the process that serves them dies meanwhile. */
export interface FollowingPlan {
  readonly path: string
  readonly runs: number
  readonly readers: number
  /** How long a reply takes. */
  readonly seconds: number
  /** Pieces of a reply in a second. */
  readonly rate: number
  readonly isKilled: boolean
}

/** What came of it. */
export interface FollowingFigures {
  /** Runs whose starts were acknowledged. */
  readonly runs: number
  readonly readers: number
  /** Events that readers got. */
  readonly events: number
  readonly lagMs: Spread
  /** What the process that served to the end has cost. */
  readonly costs: Costs
  /** How long readers had no event after the death. */
  readonly gapMs: Spread
  readonly reconnected: number
  /** What is wrong: events that a reader did not get, runs that are missing or too many, faults of the ledger or a server. */
  readonly faults: readonly string[]
}

/**
 * Has readers follow live runs of one process to their end, over loopback. If that process is killed in the middle, another one that
 * serves the same ledger takes its runs over, and its readers continue there.
 */
export async function playFollowing(plan: FollowingPlan): Promise<FollowingFigures> {
  const { path, runs, readers, seconds, rate, isKilled } = plan
  await using first = await startServing(path, 1_000 / rate)
  await using second = isKilled ? await startServing(path, 1_000 / rate) : undefined
  let serving = first
  const place = (): Place => serving.place
  const words = Math.round(seconds * rate)
  const started = await startMany(place, { name: 'run', count: runs, words })
  const ended = new AbortController()
  const middle = Promise.withResolvers<void>()
  const lags: number[] = []
  const onEvent = (lagMs: number): void => {
    if (lags.push(lagMs) === Math.round((readers * words) / 2)) middle.resolve()
  }
  const following = Promise.all(
    started.flatMap(({ runId }, index) =>
      Array.from({ length: Math.ceil((readers - index) / runs) }, () =>
        followRun(runId, { place, onEvent, signal: ended.signal }),
      ),
    ),
  )
  following.catch(() => ended.abort()).finally(() => middle.resolve())
  let late = 0
  if (second) {
    await middle.promise
    // These starts are under way when the process dies.
    const starting = startMany(place, { name: 'late', count: lateStarts, words: 1 })
    await first.kill()
    serving = second
    late = (await starting).length
  }
  const readings = await following
  const costs = await serving.costs()
  const faults = [...first.faults, ...(second?.faults ?? [])]
  await serving.kill()
  return {
    runs: runs + late,
    readers,
    events: lags.length,
    lagMs: spreadOf(lags),
    costs,
    gapMs: spreadOf(readings.flatMap(({ gapsMs }) => gapsMs)),
    reconnected: readings.filter(({ gapsMs }) => gapsMs.length > 0).length,
    faults: [...faults, ...(await faultsOf(path, readings, runs + late))],
  }
}

const lateStarts = 40

/** Holds what readers got to what the ledger has. */
async function faultsOf(
  path: string,
  readings: readonly Reading[],
  runs: number,
): Promise<readonly string[]> {
  const ledger = sqliteLedger(path)
  try {
    const faults: string[] = []
    const recorded = new Map<string, { seq: number; digest: string }>()
    for await (const { runId, head } of ledger.runs()) {
      const hash = createHash('sha256')
      for await (const event of ledger.read(runId)) hash.update(JSON.stringify(event))
      recorded.set(runId, { seq: head.seq, digest: hash.digest('hex') })
    }
    if (recorded.size !== runs) faults.push(`${runs} starts made ${recorded.size} runs.`)
    for (const { runId, seq, digest } of readings) {
      const own = recorded.get(runId)
      if (own?.seq !== seq || own.digest !== digest)
        faults.push(`A reader of run ${runId} got other events than the ${own?.seq} of the ledger.`)
    }
    for await (const verdict of verifyLedger(ledger)) {
      if (!verdict.ok) faults.push(`The ledger is damaged: ${JSON.stringify(verdict)}`)
    }
    return faults
  } finally {
    await ledger.close()
  }
}
