// A run that a runtime drove by rules of its own replays to itself with these rules, and differs without them.
import { expect, it } from 'vitest'
import {
  type Agent,
  createRuntime,
  defineAgent,
  defineGuardrail,
  memoryLedger,
  type RuntimeRules,
  withRuntimeRules,
} from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'

const rules: RuntimeRules = {
  guardrails: [defineGuardrail({ name: 'quiet', on: 'input', check: () => 'pass' })],
  handoffFilter: (messages) => messages.slice(0, 1),
  prepareTurn: ({ request }) => ({ instructions: `${request.instructions} Briefly.` }),
}

it('replays to itself with the rules of its runtime', async () => {
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Ends it.', instructions: 'End.' },
    model: scriptedModel([{ text: 'Done.' }]),
  })
  const steps = [{ toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }]
  const desk = defineAgent({
    ...{ name: 'desk', instructions: 'Hand over.', model: scriptedModel(steps), handoffs: [clerk] },
  })
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock }, ...rules }).run(desk, 'Go.')
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ text: 'Done.', agent: 'clerk' })

  const replayed = async (held: RuntimeRules) => {
    const agents = listReachableAgents(desk).map((agent) => withRuntimeRules(agent, held))
    const named = (name: string): Agent<unknown> => agents.find((agent) => agent.name === name)!
    return (await replayRun(ledger, run.id, named)).divergence
  }
  expect(await replayed(rules)).toBeUndefined()
  expect((await replayed({ ...rules, guardrails: [] }))?.recorded?.type).toBe('run_started')
  expect((await replayed({ ...rules, handoffFilter: undefined }))?.recorded?.type).toBe('agent_handed_off')
  expect((await replayed({ ...rules, prepareTurn: undefined }))?.recorded?.type).toBe('model_call_started')
})
