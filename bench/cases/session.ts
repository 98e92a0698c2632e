import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { requireWhole, turnsScript } from '../subjects/script.ts'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { openWarm, tallysticks } from './subjects.ts'

/** The last runs are measured, since one alone is too short. */
const measuredRuns = 10

export const session: Case = {
  name: 'session',
  what: 'The next runs of a conversation that has had many: ten runs of two turns are measured.',
  isComparison: true,
  unit: 'run',
  params: [{ runsBefore: 10 }, { runsBefore: 200 }],
  smokeParams: [{ runsBefore: 2 }],
  own: tallysticks,
  peers: ['ai', 'openai-agents', 'langgraph-memory', 'langgraph-sqlite', 'pi'],
  async measure(trial) {
    const { runsBefore = 0 } = trial.params
    const script = turnsScript(2)
    const opened = await openWarm(trial, script)
    for (let run = 0; run < runsBefore; run++) requireWhole(script, await opened.run('talk'))
    const bytesBefore = bytesIn(trial.folder)
    const { value, ...took } = await metered(async () => {
      const all = []
      for (let run = 0; run < measuredRuns; run++) all.push(await opened.run('talk'))
      return all
    })
    const bytes = bytesIn(trial.folder) - bytesBefore
    for (const seen of value) requireWhole(script, seen)
    if (trial.smoke) await opened.verify?.()
    await opened.close()
    return {
      units: measuredRuns,
      ...took,
      ...(bytesBefore > 0 && { facts: { 'KiB written a run': bytes / 1024 / measuredRuns } }),
    }
  },
}

/** The size of all files in the folder of the measured subject. */
function bytesIn(folder: string): number {
  return readdirSync(join(folder, 'measured')).reduce(
    (sum, name) => sum + statSync(join(folder, 'measured', name)).size,
    0,
  )
}
