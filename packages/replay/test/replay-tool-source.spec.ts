import { createRuntime, defineAgent, memoryLedger, type Agent, type Tool } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { foldTo, rebuildRequest } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { expect, it } from 'vitest'

function agentWith(tools: readonly Tool[]): {
  readonly agent: Agent
  readonly source: { tools: readonly Tool[] }
} {
  const source = { tools }
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }] },
    { toolCalls: [{ name: 'gone', input: {} }] },
    { text: 'Done.' },
  ])
  return { agent: defineAgent({ name: 'a', instructions: '', model, toolSource: source }), source }
}

it('takes the tools of a source, and what they said of calls, from the record', async () => {
  const { agent, source } = agentWith([])
  const look = testTool({
    name: 'look',
    run: () => {
      source.tools = [look]
      return 'seen'
    },
  })
  source.tools = [look, testTool({ name: 'gone', run: () => 'never' })]
  const ledger = memoryLedger()
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
  // The source has nothing of it today.
  expect(await replayRun(ledger, runId, () => agentWith([]).agent)).not.toHaveProperty('divergence')
  // It does not take what the source has today for what it had.
  expect(await replayRun(ledger, runId, () => agentWith([look]).agent)).not.toHaveProperty('divergence')
  const offered = []
  for await (const event of ledger.read(runId)) {
    if (event.type !== 'model_call_started') continue
    const request = rebuildRequest(await foldTo(ledger, runId, event.seq))
    offered.push('request' in request ? request.request.tools.map(({ name }) => name) : request)
  }
  expect(offered).toEqual([['look', 'gone'], ['look'], ['look']])
})
