import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, settle, testTool } from '@tallystick/core/testing'
import { diffRuns } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 10 }
const look = { toolCalls: [{ name: 'look', input: {} }], usage }

async function runAndFork() {
  const ledger = memoryLedger()
  const clock = manualClock()
  const model = scriptedModel([look, { text: 'Sold out.', usage }, { text: 'Politely: sold out.', usage }])
  const tools = [testTool({ name: 'look', run: () => '0 left' })]
  const agent = defineAgent({ name: 'clerk', instructions: 'Help.', model, tools })
  const prices = { 'scripted-1': { inputUsd: 10, outputUsd: 100 } }
  const runtime = createRuntime({ ledger, agents: [agent], prices, host: { clock } })
  const { runId } = await settle(clock, runtime.run(agent, 'Any left?').result)
  const events = await Array.fromAsync(ledger.read(runId))
  const atSeq = events.find(({ type }) => type === 'tool_results_injected')!.seq
  const polite = defineAgent({ name: 'clerk', instructions: 'Help politely.', model, tools })
  const fork = await settle(clock, runtime.fork(runId, { atSeq, agent: polite }).result)
  return { ledger, runId, fork: fork.runId }
}

describe('diffRuns', () => {
  it('finds where a fork parts from its run, and what each cost from there on', async () => {
    const { ledger, runId, fork } = await runAndFork()
    const { shared, differences, left, right } = await diffRuns(ledger, runId, fork)
    expect(left.events[0]?.type).toBe('model_call_started')
    expect(right.events[0]?.type).toBe('run_resumed')
    expect(shared).toBeGreaterThan(5)
    expect(differences[0]).toMatchObject({ path: 'type' })
    const tail = { reason: 'answered', turns: 1, toolCalls: 0, usage, costUsd: 0.002 }
    expect(left).toMatchObject({ ...tail, text: 'Sold out.' })
    expect(right).toMatchObject({ ...tail, text: 'Politely: sold out.' })
  })

  it('finds nothing between a run and itself', async () => {
    const { ledger, runId } = await runAndFork()
    const { shared, differences, left, right } = await diffRuns(ledger, runId, runId)
    expect([differences, left.events, right.events]).toEqual([[], [], []])
    expect(shared).toBeGreaterThan(10)
  })
})
