import { fanOutScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { floors, openWarm, requireSound, runtimes, tallysticks } from './subjects.ts'

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
    const opened = await openWarm(trial, script, [{ script: fanOutScript(200, toolMs), times: 20 }])
    const { value, ...took } = await metered(() => opened.run())
    if (value.results !== calls) throw new Error(`${value.results} of ${calls} tool results arrived.`)
    await requireSound(trial, script, opened, value)
    await opened.close()
    return { units: calls, ...took }
  },
}
