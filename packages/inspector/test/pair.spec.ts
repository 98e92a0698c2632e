import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { compareRuns } from '../src/page/worker/pair.ts'
import { readModel } from './support/read-model.ts'

it('puts a fork beside its origin turn by turn, from the event at which they part', async () => {
  const look = testTool({ name: 'look', run: () => 'sent' })
  const first = { text: 'Let me look.', toolCalls: [{ name: 'look', input: { order: 'A-7' } }] }
  const agent = (...after: readonly string[]) =>
    defineAgent({
      name: 'clerk',
      instructions: 'Answer briefly.',
      model: scriptedModel([first, ...after.map((text) => ({ text }))]),
      tools: [look],
    })
  const ledger = memoryLedger()
  const host = { clock: manualClock() }
  const origin = agent('It is on its way.')
  const run = createRuntime({ ledger, agents: [origin], host }).run(origin, 'Where is A-7?')
  await run.result
  const left = await readModel(ledger, run.id)
  const second = left.events.findLast(({ type }) => type === 'model_call_started')!.seq
  const other = defineAgent({
    ...{ name: 'clerk', instructions: 'Answer briefly.', tools: [look] },
    model: scriptedModel([{ text: 'I cannot say.' }]),
  })
  const fork = createRuntime({ ledger, agents: [other], host }).fork(run.id, { atSeq: second - 1 })
  await fork.result
  const right = await readModel(ledger, fork.id)

  const pair = await compareRuns(left, right)
  expect(pair).toMatchObject({
    isSame: false,
    left: { runId: run.id, first: { type: 'assistant_message_finished', turn: 2 } },
    right: { runId: fork.id, first: { type: 'assistant_message_finished', turn: 2 } },
    rows: [
      { turn: 1, is: 'same', left: { calls: [{ name: 'look', outcome: 'success' }] } },
      {
        turn: 2,
        is: 'parts_here',
        left: { said: { text: 'It is on its way.' } },
        right: { said: { text: 'I cannot say.' } },
      },
    ],
  })
  expect(pair.differences).toMatchObject([
    { path: 'parts[0].text', left: { text: 'It is on its way.' }, right: { text: 'I cannot say.' } },
  ])
  expect(await compareRuns(left, left)).toMatchObject({ isSame: true, differences: [] })
})
