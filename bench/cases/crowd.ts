import { deltasOf, requireWhole, type Script } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { metered, peakMiB, residentMiB } from './meter.ts'
import { floors, openWarm, runtimes, tallysticks } from './subjects.ts'

export const crowd: Case = {
  name: 'crowd',
  what: 'Many runs at once in one process, each of one turn of twenty deltas.',
  isComparison: true,
  unit: 'run',
  params: [{ runs: 1_000 }],
  smokeParams: [{ runs: 10 }],
  ...{ own: tallysticks, floors, peers: runtimes },
  async measure(trial) {
    const { runs = 0 } = trial.params
    const reply = { deltas: deltasOf(20), calls: [] }
    const script: Script = { replyOf: () => reply, maxTurns: 1, maxCalls: 0, toolMs: 0 }
    const opened = await openWarm(trial, script, [{ script, times: 1_000 }])
    const before = residentMiB()
    const { value, ...took } = await metered(() =>
      Promise.all(Array.from({ length: runs }, () => opened.run())),
    )
    const grownMiB = Math.max(0, peakMiB() - before)
    for (const seen of value) requireWhole(script, seen)
    if (trial.smoke) await opened.verify?.()
    await opened.close()
    const facts = {
      'runs a second': runs / (took.wallMs / 1000),
      'KiB a run': (grownMiB * 1024) / runs,
    }
    return { units: runs, ...took, facts }
  },
}
