import { turnsScript } from '../subjects/script.ts'
import type { Case, Measurement, Trial } from './case.ts'
import { metered, peakMiB, residentMiB } from './meter.ts'
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

async function measureDepth(trial: Trial): Promise<Measurement> {
  const { turns = 0 } = trial.params
  let endsAt = Infinity
  const script = turnsScript(turns, () => performance.now() > endsAt)
  const opened = await openWarm(trial, script)
  const before = residentMiB()
  // Another SQLite in this process, as some peers have one, would lose its locks on a file that is read beside it.
  const stored = (): number => (tallysticks.includes(trial.subject) ? storedKiB(trial.folder) : 0)
  const storedBefore = stored()
  const { value, ...took } = await metered(() => {
    endsAt = performance.now() + trial.limitMs
    return opened.run()
  })
  endsAt = Infinity
  const grownMiB = Math.max(0, peakMiB() - before)
  const storedATurn = (stored() - storedBefore) / value.replies
  if (value.replies !== turns && took.wallMs < trial.limitMs) {
    throw new Error(`The run ended after ${value.replies} of ${turns} turns.`)
  }
  await requireSound(trial, script, opened, value)
  await opened.close()
  return {
    units: value.replies,
    ...took,
    facts: {
      'MiB more than before the run': grownMiB,
      ...(storedATurn > 0 && { 'KiB stored a turn': storedATurn }),
    },
  }
}
