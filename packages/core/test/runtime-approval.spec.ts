import {
  type Agent,
  agentTool,
  type ApprovalPolicy,
  createRuntime,
  defineAgent,
  memoryLedger,
  type PolicyCall,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { recorded } from './stage.ts'

const pay = { name: 'pay', input: { amount: 5 } }

function payer(
  name: string,
  steps: readonly ScriptedStep[],
  own: { readonly approval?: ApprovalPolicy } = {},
) {
  const tool = testTool({ name: 'pay', effect: 'write', run: () => 'paid' })
  const agent = defineAgent({
    ...{ name, instructions: 'Pay.', model: scriptedModel(steps), tools: [tool] },
    ...own,
  })
  return { agent, tool }
}

/** Drives a run of an agent under a policy of the runtime. */
async function driven(agent: Agent, approval: ApprovalPolicy | undefined) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const asked: PolicyCall[] = []
  const runtime = createRuntime({
    ...{ ledger, agents: [agent], host: { clock, random: () => 0.5 } },
    ...(approval && {
      approval: (call: PolicyCall) => {
        asked.push(call)
        return approval(call)
      },
    }),
  })
  const result = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
  return { result, asked, events: await recorded(ledger, result.runId) }
}

const asksAboutWrites: ApprovalPolicy = ({ effect }) => (effect === 'write' ? 'ask' : 'run')

describe('the approval policy of a runtime', () => {
  it('holds over the agent that a conversation is handed over to, whose own policy is another one', async () => {
    const clerk = payer('clerk', [{ toolCalls: [pay] }, { text: 'Paid.' }])
    const steps = [{ toolCalls: [{ name: '', input: {} }] }]
    const desk = defineAgent({
      ...{ name: 'desk', instructions: 'Hand over.', model: scriptedModel(steps), handoffs: [clerk.agent] },
      approval: asksAboutWrites,
    })
    steps[0]!.toolCalls[0]!.name = desk.definition.handoffs![0]!.tool
    // What the first agent's own policy would have asked about is not asked about after a handoff.
    expect((await driven(desk, undefined)).result.status).toBe('done')
    expect(clerk.tool.runs).toHaveLength(1)
  })

  it('asks the agent that has the conversation, and says which agent asks', async () => {
    const clerk = payer('clerk', [{ toolCalls: [pay] }, { text: 'Paid.' }])
    const steps = [{ toolCalls: [{ name: '', input: {} }] }]
    const desk = defineAgent({
      ...{ name: 'desk', instructions: 'Hand over.', model: scriptedModel(steps), handoffs: [clerk.agent] },
    })
    steps[0]!.toolCalls[0]!.name = desk.definition.handoffs![0]!.tool
    const { result, asked } = await driven(desk, asksAboutWrites)
    expect(result).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
    expect(asked.map(({ agent, name }) => [agent, name])).toEqual([
      ['desk', steps[0]!.toolCalls[0]!.name],
      ['clerk', 'pay'],
    ])
    expect(clerk.tool.runs).toEqual([])
  })

  it('holds in the runs of agents that are tools', async () => {
    const clerk = payer('clerk', [{ toolCalls: [pay] }, { text: 'Paid.' }])
    const model = scriptedModel([
      { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }] },
      { text: 'Done.' },
    ])
    const desk = defineAgent({
      ...{ name: 'desk', instructions: 'Delegate.', model },
      tools: [agentTool(clerk.agent, { effect: 'read', description: 'Pays.' })],
    })
    const { result } = await driven(desk, asksAboutWrites)
    expect(result).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
    expect(clerk.tool.runs).toEqual([])
  })

  it.each([
    ['run', 'run', 'run'],
    ['run', 'ask', 'ask'],
    ['ask', 'run', 'ask'],
    ['ask', { ask: 'money' }, { ask: 'money' }],
    [{ ask: 'money' }, { deny: 'never' }, { deny: 'never' }],
    [{ deny: 'never' }, 'run', { deny: 'never' }],
  ] as const)('and that of the agent: of %j and %j the stricter holds', async (wide, own, both) => {
    const { agent, tool } = payer('payer', [{ toolCalls: [pay] }, { text: 'Ok.' }], { approval: () => own })
    const { result, events } = await driven(agent, () => wide)
    const requested = events.find((event) => event.type === 'approval_requested')
    const ended = events.find((event) => event.type === 'tool_result')
    const isAsked = both === 'ask' || (typeof both === 'object' && 'ask' in both)
    expect({ isAsked: requested !== undefined, reason: requested?.reason }).toEqual({
      ...{ isAsked, reason: typeof both === 'object' && 'ask' in both ? both.ask : undefined },
    })
    expect(ended?.outcome === 'denied').toBe(typeof both === 'object' && 'deny' in both)
    expect(tool.runs).toHaveLength(both === 'run' ? 1 : 0)
    expect(result.status).toBe(isAsked ? 'suspended' : 'done')
  })

  it('that throws denies the call', async () => {
    const { agent, tool } = payer('payer', [{ toolCalls: [pay] }, { text: 'Ok.' }])
    await driven(agent, () => {
      throw new Error('no policy today')
    })
    expect(tool.runs).toEqual([])
  })
})
