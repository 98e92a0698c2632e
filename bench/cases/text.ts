import { textScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { floors, openWarm, requireSound, runtimes, tallysticks } from './subjects.ts'

export const text: Case = {
  name: 'text',
  what: 'One turn that streams a text in deltas of five characters.',
  isComparison: true,
  unit: 'delta',
  params: [{ deltas: 5_000 }],
  smokeParams: [{ deltas: 40 }],
  ...{ own: tallysticks, floors, peers: runtimes },
  async measure(trial) {
    const { deltas = 0 } = trial.params
    const script = textScript(deltas)
    const opened = await openWarm(trial, script, [{ script: textScript(2_000), times: 60 }])
    const { value, ...took } = await metered(() => opened.run())
    if (value.replies !== 1) throw new Error(`The model was called ${value.replies} times.`)
    await requireSound(trial, script, opened, value)
    await opened.close()
    return { units: deltas, ...took }
  },
}
