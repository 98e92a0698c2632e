import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { RuntimeEvent } from '@tallystick/core'
import { buildForkedEvents } from '@tallystick/core/internal'
import { sampleRunId } from '@tallystick/testkit'
import type { Case } from './case.ts'
import { fileIn, recordedRun } from './recorded-run.ts'
import { cliPath, start } from './started-process.ts'

/** So many runs are appended at once. */
const runsAtOnce = 256

export const list: Case = {
  name: 'list',
  what: '`tallystick list` of a ledger file of which nothing is projected: runs of two turns that have ended.',
  isComparison: true,
  unit: 'run',
  params: [{ runs: 1 }, { runs: 2_000 }],
  smokeParams: [{ runs: 3 }],
  own: ['tallystick-cli'],
  peers: [],
  async measure(trial) {
    const { runs = 0 } = trial.params
    const { events } = await recordedRun(trial, 2)
    const path = fileIn(trial, 'runs')
    const ledger = sqliteLedger(path)
    for (let first = 1; first <= runs; first += runsAtOnce) {
      const count = Math.min(runsAtOnce, runs + 1 - first)
      await Promise.all(
        Array.from({ length: count }, async (_, index) => {
          const copy = copyRun(events, first + index)
          const runId = sampleRunId(first + index)
          await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, copy, { durability: 'lazy' })
        }),
      )
    }
    await ledger.close()
    const { output, ...took } = await start([cliPath(), 'list', path])
    // A line of heads, and one for each run.
    const lines = output.trimEnd().split('\n').length
    if (lines < runs + 1) throw new Error(`${lines} lines were printed for ${runs} runs.`)
    return { units: runs, ...took }
  },
}

/** The same run under another id, as a run of its own. */
function copyRun(events: readonly RuntimeEvent[], ordinal: number): readonly RuntimeEvent[] {
  return buildForkedEvents(events, { runId: sampleRunId(ordinal) }).map((event) => {
    if (event.type !== 'run_started') return event
    const { parent: _fork, ...started } = event
    return started
  })
}
