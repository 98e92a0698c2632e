import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { diffRuns, replayRun } from '@tallystick/replay'
import { scriptedModel } from '@tallystick/testkit'
import { expect, it } from 'vitest'

it('is recorded again by a replay, and no difference between two runs', async () => {
  const ledger = memoryLedger()
  const model = scriptedModel([{ text: 'Four.' }, { text: 'Four.' }])
  const agent = defineAgent({ name: 'sums', instructions: 'Add.', model })
  const runtime = createRuntime({ ledger, agents: [agent] })
  const [one, two] = [runtime.run(agent, 'Two and two?'), runtime.run(agent, 'Two and two?')]
  await Promise.all([one.result, two.result])
  await one.feedback({ by: 'ada', score: 0, note: 'Not the sum.' })
  const events = (await Array.fromAsync(ledger.read(one.id))).length
  expect(await replayRun(ledger, one.id, () => agent)).toEqual({ runId: one.id, events })
  const { differences, left, right } = await diffRuns(ledger, one.id, two.id)
  expect(differences).toEqual([])
  expect([left.reason, right.reason]).toEqual(['answered', 'answered'])
})
