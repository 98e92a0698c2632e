import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { createRuntime, defineAgent } from '@tallystick/core'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import { readRunSummaries, verifyLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { startPollingProcess, type PollingProcess } from './support/polling-process.ts'

const server = inject('postgres')
const connectionString = 'connectionString' in server ? server.connectionString : ''

// Only a platform without Postgres leaves it out, and the run says so.
describe.skipIf(connectionString === '')(
  'polling workers of several processes on one Postgres ledger',
  () => {
    it('take up each run of a killed process once, leave it to its holder, and take it up when that one is killed', async () => {
      const schema = `leases_${process.pid}`
      const ledger = postgresLedger({ connectionString, schema })
      onTestFinished(() => ledger.close())
      const agent = defineAgent({
        name: 'quick',
        instructions: 'Answer.',
        model: scriptedModel([{ text: 'Yes.' }]),
      })
      await createRuntime({ ledger, agents: [agent] }).run(agent, 'Hi.').result
      const start = (): Promise<PollingProcess> => startPollingProcess(connectionString, schema)
      const inputs = Array.from({ length: 8 }, (_, index) => `run ${index}`)
      const first = await start()
      for (const input of inputs) await first.start(input)
      await first.kill()

      const [left, right] = await Promise.all([start(), start()])
      const both = [left, right]
      const calls = (): readonly string[] => both.flatMap((each) => each.calls)
      await Promise.all(both.map((each) => each.work()))
      while (calls().length < inputs.length) {
        const next = both.map((each) => each.called(each.calls.length + 1).catch(() => undefined))
        await Promise.race(next)
      }
      expect(calls().toSorted()).toEqual(inputs)

      const [holder, other] = left.calls.length > 0 ? [left, right] : [right, left]
      const orphaned = [...holder.calls]
      await holder.kill()
      // One that starts takes up what the other one has left to it, without a wait for leases to end.
      const late = await start()
      await late.work()
      await late.called(orphaned.length)
      await Promise.all([other.answer(), late.answer()])
      expect(late.calls.toSorted()).toEqual(orphaned.toSorted())
      expect([...other.calls, ...late.calls].toSorted()).toEqual(inputs)
      expect([...holder.faults, ...other.faults, ...late.faults]).toEqual([])

      const runs = await Array.fromAsync(readRunSummaries(ledger))
      expect(runs.map(({ status }) => status)).toEqual(['quick', ...inputs].map(() => 'done'))
      for (const { runId } of runs) expect(checkLaws(await Array.fromAsync(ledger.read(runId)))).toEqual([])
      for (const { runId } of runs) expect(await ledger.lease(runId)).toBeUndefined()
      expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({
        ok: true,
        runs: runs.length,
      })
    })
  },
)
