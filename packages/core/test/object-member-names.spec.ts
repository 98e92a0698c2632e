import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Limits, type RunState } from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

/** Members that every object inherits; and what makes an object another's heir. */
const names = ['constructor', 'toString', 'hasOwnProperty', '__proto__'] as const

/** Asks for a tool once a turn, each time with another input, then answers. */
function steps(name: string, turns: number): readonly ScriptedStep[] {
  const asking = Array.from({ length: turns }, (_, turn) => ({ toolCalls: [{ name, input: { turn } }] }))
  return [...asking, { text: 'Done.' }]
}

/** How the calls of a run ended that asks three times for a tool of that name. */
async function outcomesOf(name: string, limits: Limits = {}): Promise<readonly string[]> {
  const tool = testTool({ name, run: ({ input }) => JSON.stringify(input) })
  const { play, eventsOf } = stage({ steps: steps(name, 3), tools: [tool], limits })
  const result = await play()
  expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Done.' })
  const events = checkedRun(await eventsOf(result.runId))
  const end = events.reduce<RunState | undefined>(evolve, undefined)
  expect(Object.entries(end?.totals.toolCallsByTool ?? {})).toEqual([[name, tool.runs.length]])
  return ofType(events, 'tool_result').map(({ outcome }) => outcome)
}

describe('a tool whose name is that of something which every object has', () => {
  it.each(names)('runs as any other: %s', async (name) => {
    expect(await outcomesOf(name)).toEqual(['success', 'success', 'success'])
  })

  it.each(names)('is held to its own limit: %s', async (name) => {
    const maxCallsByTool = JSON.parse(`{${JSON.stringify(name)}:2}`) as Record<string, number>
    expect(await outcomesOf(name, { maxCallsByTool })).toEqual(['success', 'success', 'limit_reached'])
  })

  it.each(names)('has its failures counted: %s', async (name) => {
    const failing = (): string => {
      throw new Error('broken')
    }
    const limits = { maxRepeats: 1, onLimit: 'finalize' } as const
    const tool = testTool({ name, run: failing })
    const { play, eventsOf } = stage({ steps: steps(name, 3), tools: [tool], limits })
    const result = await play()
    expect(result.reason).toBe('repeat_limit')
    const results = ofType(await eventsOf(result.runId), 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'limit_reached'])
  })

  it('is unknown where the agent has no such tool', async () => {
    const { play, eventsOf } = stage({ steps: steps('constructor', 1), tools: [] })
    const { runId, reason } = await play()
    expect(reason).toBe('answered')
    expect(ofType(await eventsOf(runId), 'tool_result')).toMatchObject([{ outcome: 'unknown_tool' }])
  })
})

describe('a model whose name is that of something which every object has', () => {
  it.each(names)('has no price that was not given: %s', async (name) => {
    const clock = manualClock()
    const model = scriptedModel([{ text: 'Done.', usage: { inputTokens: 9, outputTokens: 1 } }], name)
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], prices: {}, host: { clock } })
    const result = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(result.costUsd).toBeUndefined()
  })
})
