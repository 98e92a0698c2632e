import { expect, it } from 'vitest'
import { createRuntime, defineAgent, defineGuardrail, memoryLedger, withRuntimeRules } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'

it('a run with rules of its own replays to itself where the agents get them, and names what differs without', async () => {
  const guardrails = [defineGuardrail({ name: 'brief', on: 'input', check: () => ({ replace: 'Brief.' }) })]
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Ends it.', instructions: 'End.' },
    model: scriptedModel([{ text: 'Done.' }]),
  })
  const desk = defineAgent({
    ...{ name: 'desk', instructions: 'Hand over.', handoffs: [clerk] },
    model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }]),
  })
  const ledger = memoryLedger()
  const own = {
    guardrails,
    nestHandoffHistory: true,
    inputFilter: async <T>(messages: T): Promise<T> => messages,
  }
  const { runId, seq } = await createRuntime({ ledger }).run(desk, 'Go.', own).result
  const agents = [desk, clerk].map((agent) => withRuntimeRules(agent, own))
  const replayed = await replayRun(
    ledger,
    runId,
    (name) => agents.find((agent) => agent.name === name) ?? desk,
  )
  expect(replayed).toEqual({ runId, events: seq })
  const bare = await replayRun(ledger, runId, (name) => (name === 'desk' ? desk : clerk))
  expect(bare.divergence).toMatchObject({
    seq: 1,
    differences: [{ path: expect.stringContaining('definition') }, {}],
  })
})
