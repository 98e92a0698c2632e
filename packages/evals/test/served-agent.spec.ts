import { type Agent, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { type EvalCase, evaluate, toolCalls } from '@tallystick/evals'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { serveAgent } from '../src/served-agent.ts'

const look = testTool({ name: 'look', run: () => 'real' })
const each: EvalCase = {
  id: 'a',
  input: 'Look.',
  calls: [{ tool: 'look', input: {}, outcome: 'success', content: 'recorded' }],
}

async function play(agent: Agent<unknown>): Promise<string> {
  const ledger = memoryLedger()
  const served = serveAgent(agent, each, {})
  const { runId } = await createRuntime({ ledger, agents: [served] }).run(served, 'Look.').result
  const results = await Array.fromAsync(ledger.find({ runId, types: ['tool_result'] }))
  return results.map((event) => JSON.stringify('content' in event && event.content)).join()
}

const calling = () => scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }])
const base = { name: 'a', description: 'Looks.', instructions: 'Look.' }

it.each<[string, () => Agent<unknown>]>([
  ['a list', () => defineAgent({ ...base, model: calling(), tools: [look] })],
  ['a function of the turn', () => defineAgent({ ...base, model: calling(), tools: () => [look] })],
  ['a source', () => defineAgent({ ...base, model: calling(), toolSource: { tools: [look] } })],
])('serves tools of %s', async (_what, agentOf) => {
  const before = look.runs.length
  expect(await play(agentOf())).toContain('recorded')
  expect(look.runs).toHaveLength(before)
})

it('serves agents that hand over in a circle', async () => {
  const one: Agent<unknown> = defineAgent({
    ...{ ...base, name: 'one' },
    model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_two', input: {} }] }]),
    handoffs: () => [two],
  })
  const two: Agent<unknown> = defineAgent({
    ...base,
    name: 'two',
    model: calling(),
    tools: [look],
    handoffs: () => [one],
  })
  const before = look.runs.length
  expect(await play(one)).toContain('recorded')
  expect(look.runs).toHaveLength(before)
  expect(serveAgent(one, each, {}).definition.digest).toBe(one.definition.digest)
})

it('keeps a denial of a policy, and asks about armed tools alone', async () => {
  const asked = async (approval: 'ask' | { deny: string }, armed: boolean): Promise<string> => {
    const agent = defineAgent({ ...base, model: calling(), tools: [look], approval: () => approval })
    const report = await evaluate({
      ...{
        cases: [{ id: 'a', input: 'Look.' }],
        agents: { agent },
        scorers: { calls: toolCalls({ expected: [{ tool: 'look' }] }) },
      },
      ...{ ledger: memoryLedger(), tools: { look: armed ? 'armed' : () => 'stub' } },
    })
    return report.failures.shown[0]?.what ?? 'answered'
  }
  expect(await asked('ask', false)).toBe('answered')
  expect(await asked('ask', true)).toBe('waits for an approval of look')
  expect(await asked({ deny: 'never' }, true)).toBe('answered')
})
