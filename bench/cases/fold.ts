import type { Ledger, RunId } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import { foldTo, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { Case, Measurement, Trial } from './case.ts'
import { metered } from './meter.ts'
import { recordedRun } from './recorded-run.ts'

/** The first pass of a process runs code that is not compiled yet. */
const passes = [
  { turns: 1_000, passesBefore: 0 },
  { turns: 1_000, passesBefore: 20 },
]

export const fold: Case = {
  name: 'fold',
  what: 'The last state of a run from the events in its ledger file, without a snapshot; and from events in memory.',
  isComparison: true,
  unit: 'event',
  params: passes,
  smokeParams: [{ turns: 4 }],
  own: ['tallystick-sqlite', 'events-in-memory'],
  peers: [],
  async measure(trial) {
    if (trial.subject === 'tallystick-sqlite') {
      return await measureReading(trial, async (ledger, runId) => {
        const { phase } = await foldTo(ledger, runId, undefined, { snapshots: false })
        if (phase !== 'done') throw new Error(`The state is ${phase}.`)
      })
    }
    const { events } = await recordedRun(trial, trial.params['turns'] ?? 0)
    const pass = (): ReturnType<typeof evolve> | undefined => {
      let state: Parameters<typeof evolve>[0]
      for (const event of events) state = evolve(state, event)
      return state
    }
    for (let before = 0; before < (trial.params['passesBefore'] ?? 0); before++) pass()
    const { value, ...took } = await metered(pass)
    if (value?.phase !== 'done') throw new Error(`The state is ${value?.phase}.`)
    return { units: events.length, ...took }
  },
}

export const verify: Case = {
  name: 'verify',
  what: 'All checks of one run: its chain of hashes, its laws and its projections.',
  isComparison: true,
  unit: 'event',
  params: passes,
  smokeParams: [{ turns: 4 }],
  own: ['tallystick-sqlite'],
  peers: [],
  measure: (trial) =>
    measureReading(trial, async (ledger, runId) => {
      const verdict = await verifyRun(ledger, runId)
      if (!verdict.ok) throw new Error(`The run does not verify: ${JSON.stringify(verdict)}`)
    }),
}

async function measureReading(
  trial: Trial,
  read: (ledger: Ledger, runId: RunId) => Promise<void>,
): Promise<Measurement> {
  const { events, path } = await recordedRun(trial, trial.params['turns'] ?? 0)
  const ledger = sqliteLedger(path)
  const pass = (): Promise<void> => read(ledger, events[0]?.runId as RunId)
  for (let before = 0; before < (trial.params['passesBefore'] ?? 0); before++) await pass()
  const { value: _, ...took } = await metered(pass)
  await ledger.close()
  return { units: events.length, ...took }
}
