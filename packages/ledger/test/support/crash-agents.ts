import { agentTool, defineAgent, type Agent } from '@tallystick/core'
import type { ScriptedCall, ScriptedReply, TestTool } from '@tallystick/testkit'
import { byTurn, stagedModel, stagedTool, type Stage } from './crash-effects.ts'

/** What every scripted reply is said to have used. */
const usage = { inputTokens: 120, outputTokens: 17 } as const

/** A reply that asks for tools by name, each call with an input of its own, so that none is a repetition. */
export function callsTools(...names: readonly string[]): ScriptedReply {
  const toolCalls = names.map((name, ordinal): ScriptedCall => ({ name, input: { ordinal } }))
  return { toolCalls, usage }
}

export function saying(text: string): ScriptedReply {
  return { text, usage }
}

export function look(stage: Stage): TestTool {
  return stagedTool(stage, { name: 'look' })
}

/** A write that declares nothing: a start of it that a resume finds in doubt stays in doubt. */
export function undeclared(stage: Stage, name: string): TestTool {
  return stagedTool(stage, { name, effect: 'write' })
}

/** An agent that does no more than pay. */
export function helper(stage: Stage, pay: TestTool): Agent<unknown> {
  return defineAgent({
    name: 'helper',
    description: 'Pays.',
    instructions: 'Pay.',
    tools: [pay],
    model: stagedModel(stage, byTurn([callsTools('pay'), saying('Paid.')]), 'scripted-2'),
  })
}

/** An agent that lets the helper pay, in a run of its own, and then ships. */
export function employer(stage: Stage, worker: Agent<unknown>): Agent<unknown> {
  const delegating: ScriptedReply = {
    toolCalls: [
      { name: 'helper', input: { task: 'Pay.' } },
      { name: 'ship', input: {} },
    ],
    usage,
  }
  return defineAgent({
    name: 'employer',
    instructions: 'Delegate.',
    tools: [agentTool(worker), undeclared(stage, 'ship')],
    model: stagedModel(stage, byTurn([delegating, saying('I was helped.')])),
  })
}

/** An agent whose limits two workers share, a read and a write of one reply, beside a write of its own. */
export function manager(stage: Stage, worker: Agent<unknown>): Agent<unknown> {
  const task = { task: 'Pay.' }
  const delegating: ScriptedReply = {
    toolCalls: [
      { name: 'first', input: task },
      { name: 'second', input: task },
      { name: 'ship', input: {} },
    ],
    usage,
  }
  return defineAgent({
    name: 'manager',
    instructions: 'Delegate.',
    tools: [
      agentTool(worker, { name: 'first', effect: 'read' }),
      agentTool(worker, { name: 'second' }),
      undeclared(stage, 'ship'),
    ],
    limits: { maxTurns: 40, maxToolCalls: 12, maxTotalTokens: 40_000 },
    model: stagedModel(stage, byTurn([delegating, saying('All was done.')])),
  })
}
