import { turnsScript } from '../subjects/script.ts'
import type { Case, Measurement, Trial } from './case.ts'
import { meteredTimes, peakMiB, residentMiB } from './meter.ts'
import { storedKiB } from './stored.ts'
import { floors, openWarm, requireSound, runtimes, tallysticks } from './subjects.ts'

export const depth: Case = {
  name: 'depth',
  what: 'A run of many turns, each of twenty deltas and one tool call that answers at once.',
  isComparison: true,
  unit: 'turn',
  params: [{ turns: 10 }, { turns: 100 }, { turns: 1_000 }, { turns: 3_000 }],
  smokeParams: [{ turns: 4 }],
  ...{ own: tallysticks, floors, peers: runtimes },
  measure: measureDepth,
}

/** The same on every store. */
export const persistence: Case = {
  name: 'persistence',
  what: 'The run of the case depth on stores that outlive the process: files, and a Postgres server that syncs.',
  isComparison: true,
  unit: 'turn',
  params: [{ turns: 100 }],
  smokeParams: [{ turns: 4 }],
  own: ['tallystick-sqlite', 'tallystick-postgres'],
  peers: ['mastra-libsql', 'langgraph-sqlite', 'langgraph-postgres'],
  onPostgres: ['tallystick-postgres', 'langgraph-postgres'],
  measure: measureDepth,
}

/** Short runs are measured several times: so many turns in all, at least. */
const leastTurns = 100

async function measureDepth(trial: Trial): Promise<Measurement> {
  const { turns = 0 } = trial.params
  let endsAt = Infinity
  const script = turnsScript(turns, () => performance.now() > endsAt)
  const opened = await openWarm(trial, script)
  const before = residentMiB()
  // Another SQLite in this process, as some peers have one, would lose its locks on a file that is read beside it.
  const stored = (): number => (tallysticks.includes(trial.subject) ? storedKiB(trial.folder) : 0)
  const storedBefore = stored()
  const times = trial.smoke ? 1 : Math.ceil(leastTurns / turns)
  endsAt = performance.now() + trial.limitMs
  const { value, ...took } = await meteredTimes(() => opened.run(), { times, limitMs: trial.limitMs })
  const isLate = performance.now() > endsAt
  endsAt = Infinity
  const grownMiB = Math.max(0, peakMiB() - before)
  const played = value.reduce((sum, { replies }) => sum + replies, 0)
  const storedATurn = (stored() - storedBefore) / played
  for (const seen of value) {
    if (seen.replies !== turns && !isLate) {
      throw new Error(`The run ended after ${seen.replies} of ${turns} turns.`)
    }
    await requireSound(trial, script, opened, seen)
  }
  await opened.close()
  return {
    units: played,
    ...took,
    facts: {
      'MiB more than before the run': grownMiB,
      ...(storedATurn > 0 && { 'KiB stored a turn': storedATurn }),
    },
  }
}
