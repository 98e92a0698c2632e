import { createRuntime, type Model } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { agentOf, scriptedModel } from '../subjects/tallystick.ts'
import type { Case } from './case.ts'
import { metered } from './meter.ts'
import { copyEvents, fileIn, recordedRun } from './recorded-run.ts'

export const resume: Case = {
  name: 'resume',
  what: 'From opening the ledger of a run that a crash interrupted in its last turn, to the next model call.',
  isComparison: true,
  unit: 'event',
  params: [{ turns: 100 }, { turns: 1_000 }],
  smokeParams: [{ turns: 4 }],
  own: ['tallystick-sqlite'],
  peers: [],
  async measure(trial) {
    const { turns = 0 } = trial.params
    const { events, script } = await recordedRun(trial, turns)
    const last = events.findLastIndex(({ type }) => type === 'model_call_started')
    const before = events.slice(0, last + 1)
    const path = fileIn(trial, 'interrupted')
    const interrupted = sqliteLedger(path)
    await copyEvents(before, interrupted)
    await interrupted.close()
    const scripted = scriptedModel({ ...script, replyOf: () => script.replyOf(turns - 1) })
    const { value: run, ...took } = await metered(async () => {
      const ledger = sqliteLedger(path)
      let called = (): void => undefined
      const calling = new Promise<void>((resolve) => (called = resolve))
      const model: Model = {
        ...scripted,
        stream(...call) {
          called()
          return scripted.stream(...call)
        },
      }
      const agent = agentOf(script, model)
      const resumed = createRuntime({ ledger, agents: [agent] }).resume(events[0]?.runId ?? '')
      await Promise.race([calling, resumed.result])
      return { ledger, resumed }
    })
    const { reason } = await run.resumed.result
    if (reason !== 'answered') throw new Error(`The resumed run ended as ${reason}.`)
    await run.ledger.close()
    return { units: before.length, ...took }
  },
}
