import { textScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { meteredTimes } from './meter.ts'
import { floors, openWarm, requireSound, runtimes, tallysticks } from './subjects.ts'

/** One text alone takes a few milliseconds. */
const measuredTexts = 10

export const text: Case = {
  name: 'text',
  what: 'One turn that streams a text in deltas of five characters: ten such runs are measured.',
  isComparison: true,
  unit: 'delta',
  params: [{ deltas: 5_000 }],
  smokeParams: [{ deltas: 40 }],
  ...{ own: tallysticks, floors, peers: runtimes },
  async measure(trial) {
    const { deltas = 0 } = trial.params
    const script = textScript(deltas)
    const opened = await openWarm(trial, script, [{ script: textScript(2_000), times: 60 }])
    const times = trial.smoke ? 1 : measuredTexts
    const { value, ...took } = await meteredTimes(() => opened.run(), { times, limitMs: trial.limitMs })
    for (const seen of value) {
      if (seen.replies !== 1) throw new Error(`The model was called ${seen.replies} times.`)
      await requireSound(trial, script, opened, seen)
    }
    await opened.close()
    return { units: deltas * value.length, ...took }
  },
}
