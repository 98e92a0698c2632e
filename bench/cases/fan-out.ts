import { fanOutScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { meteredTimes } from './meter.ts'
import { floors, openWarm, requireSound, runtimes, tallysticks } from './subjects.ts'

/** The run is played so often: one alone is over before its code is compiled, and shorter than one collection of garbage. */
const measuredRuns = 20

export const fanOut: Case = {
  name: 'fan-out',
  what: 'One turn of many tool calls that may all run at once, and one turn that ends the run.',
  isComparison: true,
  unit: 'call',
  params: [
    { calls: 1_000, toolMs: 0 },
    { calls: 1_000, toolMs: 20 },
  ],
  smokeParams: [{ calls: 12, toolMs: 1 }],
  ...{ own: tallysticks, floors, peers: runtimes },
  async measure(trial) {
    const { calls = 0, toolMs = 0 } = trial.params
    const script = fanOutScript(calls, toolMs)
    const opened = await openWarm(trial, script, [{ script: fanOutScript(200, toolMs), times: 60 }])
    const times = trial.smoke ? 1 : measuredRuns
    const { value, ...took } = await meteredTimes(() => opened.run(), { times, limitMs: trial.limitMs })
    for (const seen of value) {
      if (seen.results !== calls) throw new Error(`${seen.results} of ${calls} tool results arrived.`)
      await requireSound(trial, script, opened, seen)
    }
    await opened.close()
    return { units: calls * value.length, ...took }
  },
}
