import { auditAll } from '@tallystick/core/machine'
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Model,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
const paying = (effect: 'read' | 'write' = 'write') =>
  testTool({ name: 'pay', effect, check: () => ({ kind: 'ask' }) })

/** A model whose service keeps the conversation. */
function keeping(conversation: string): Model {
  return { ...scriptedModel(steps), pinnedOptions: { conversation } }
}

function agentOf(change: Partial<AgentOptions> = {}): Agent {
  return defineAgent({
    name: 'payer',
    instructions: 'Pay.',
    model: keeping('conv_1'),
    tools: [paying()],
    ...change,
  })
}

/** A run that waits, resumed by other code: what it ends in, and what is recorded of the code. */
async function resumedBy(
  agent: Agent,
  onDrift: 'continue' | 'refuse',
): Promise<{ failure?: unknown; events: readonly RuntimeEvent[] }> {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const before = agentOf()
  const first = createRuntime({ ledger, agents: [before], host: { clock } })
  const { runId, pendingApprovals } = await waitUntilSettled(clock, first.run(before, 'Pay.').result)
  const second = createRuntime({ ledger, agents: [agent], onDrift, host: { clock, report: () => {} } })
  const run = second.resume(runId)
  const failure = await waitUntilSettled(
    clock,
    run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }).then(
      () => undefined,
      (error: unknown) => error,
    ),
  )
  return { ...(failure !== undefined && { failure }), events: await recorded(ledger, runId) }
}

describe('code that changed while a run waited', () => {
  const changes: readonly (readonly [string, Partial<AgentOptions>, string])[] = [
    ['the conversation that a service keeps', { model: keeping('conv_2') }, 'policy.models'],
    [
      'what its adapter adds to requests',
      { model: { ...keeping('conv_1'), additions: [{ option: 'extraBody', field: 'seed', digest: 'd' }] } },
      'policy.models',
    ],
    ['its limits', { limits: { maxTurns: 3 } }, 'policy.limits'],
    ['how failed calls are tried again', { retry: { maxAttempts: 9 } }, 'policy.retry'],
    ['how long a call may take', { timeouts: { idleMs: 9 } }, 'policy.timeouts'],
    [
      'when its history is shortened',
      { compaction: { maxContextTokens: 9, keepMessages: 2 } },
      'policy.compaction',
    ],
    ['what a tool does', { tools: [paying('read')] }, 'policy.tools'],
    ['its own approvals', { approval: () => 'ask' }, 'policy.approval'],
    ['its instructions', { instructions: 'Pay less.' }, 'instructions'],
    ['its model settings', { modelSettings: { temperature: 1 } }, 'modelSettings'],
  ]

  it.each(changes)('is found by %s, and refused where that is asked for', async (_what, change, named) => {
    const { failure, events } = await resumedBy(agentOf(change), 'refuse')
    expect(String(failure)).toContain(`What differs: ${named}. Resume it`)
    expect(ofType(events, 'run_resumed')).toEqual([])
  })

  it.each(changes)('is found by %s, and put on record where the run continues', async (_what, change) => {
    const agent = agentOf(change)
    const { failure, events } = await resumedBy(agent, 'continue')
    expect(failure).toBeUndefined()
    expect(ofType(events, 'run_resumed')[0]?.definition?.digest).toBe(agent.definition.digest)
  })
})

describe('what the options of a model add to its requests', () => {
  const additions = [{ option: 'extraBody', field: 'instructions', replaces: true, digest: 'd1' }] as const
  const adding = (): Model => ({ ...scriptedModel(steps), additions })

  it.each<
    [string, (agent: Agent) => Parameters<ReturnType<typeof createRuntime>['run']>[2], Partial<AgentOptions>]
  >([
    ['the agent', () => ({}), { model: adding(), tools: [paying('read')] }],
    ['the run', () => ({ model: adding() }), {}],
  ])('given a model of %s, when it is called, then every call names it', async (_whose, options, change) => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const agent = agentOf({ ...change, approval: () => 'run' })
    const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Pay.', options(agent))
    const { runId } = await waitUntilSettled(clock, run.result)
    const events = await recorded(ledger, runId)
    expect(ofType(events, 'model_call_started').map((call) => call.additions)).toContainEqual(additions)
    expect(ofType(events, 'model_call_started').every((call) => call.additions !== undefined)).toBe(true)
    const forged = events.map((event) =>
      event.type === 'model_call_started' ? { ...event, additions: [] } : event,
    )
    expect(auditAll(events)?.runId).toBe(runId)
    expect(() => auditAll(forged)).toThrow(expect.objectContaining({ law: 7 }))
  })
})
