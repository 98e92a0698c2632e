import { requireWhole, turnsScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { storedKiB } from './stored.ts'
import { floors, openWarm, tallysticks } from './subjects.ts'

/** The last runs are measured, since one alone is too short. */
const measuredRuns = 10

export const session: Case = {
  name: 'session',
  what: 'The next runs of a conversation that has had many: ten runs of two turns are measured.',
  isComparison: true,
  unit: 'run',
  params: [{ runsBefore: 10 }, { runsBefore: 200 }],
  smokeParams: [{ runsBefore: 2 }],
  ...{ own: tallysticks, floors },
  peers: ['ai', 'openai-agents', 'langgraph-memory', 'langgraph-sqlite', 'pi'],
  async measure(trial) {
    const { runsBefore = 0 } = trial.params
    const script = turnsScript(2)
    const opened = await openWarm(trial, script, [{ script, times: 60, conversation: 'warm-up' }])
    for (let run = 0; run < runsBefore; run++) requireWhole(script, await opened.run('talk'))
    const before = storedKiB(trial.folder)
    const { value, ...took } = await metered(async () => {
      const all = []
      for (let run = 0; run < measuredRuns; run++) all.push(await opened.run('talk'))
      return all
    })
    const stored = storedKiB(trial.folder) - before
    for (const seen of value) requireWhole(script, seen)
    if (trial.smoke) await opened.verify?.()
    await opened.close()
    return {
      units: measuredRuns,
      ...took,
      ...(before > 0 && { facts: { 'KiB stored a run': stored / measuredRuns } }),
    }
  },
}
