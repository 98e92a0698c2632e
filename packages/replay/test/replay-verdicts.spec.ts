import {
  type Agent,
  createRuntime,
  defineAgent,
  type Guardrail,
  type GuardrailVerdict,
  memoryLedger,
  type PolicyVerdict,
  type RuntimeEvent,
} from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'

interface App {
  readonly trusted: boolean
}

const names = ['look', 'weigh', 'pay', 'sell', 'buy', 'tip'] as const
type Finds = Readonly<Record<string, GuardrailVerdict<JsonObject>>>
type Verdicts = Readonly<Record<string, PolicyVerdict>>

/** What a guardrail finds in the calls, by the name of the tool. */
function finds(guardrail: string, of: Finds): Guardrail {
  return { name: guardrail, on: 'tool_input', check: ({ name }) => of[name] ?? 'pass' }
}

/** Plays one reply with a call of each tool, given a context that the policy asks for; returns the events. */
async function replayed(
  guardrails: readonly Guardrail[],
  policy: Verdicts,
  refuses: readonly string[] = [],
): Promise<readonly RuntimeEvent[]> {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const tools = names.map((name) =>
    testTool({
      name,
      check: (input) =>
        refuses.includes(name) || input['bad'] === true
          ? { kind: 'refuse', outcome: 'invalid_input', text: `No ${name}.` }
          : name === 'tip' && policy[name] === undefined
            ? { kind: 'ask', approvers: [{ count: 2 }] }
            : { kind: 'run' },
    }),
  )
  const agent = defineAgent<unknown, App>({
    ...{ name: 'a', instructions: 'Act.', tools, guardrails },
    model: scriptedModel([
      { toolCalls: names.map((name) => ({ name, input: { at: name } })) },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
    ]),
    approval: ({ name, context }) => (context.trusted ? 'run' : (policy[name] ?? 'run')),
  })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'Go.', { context: { trusted: false } })
  await waitUntilSettled(clock, run.result)
  const events = await Array.fromAsync(ledger.read(run.id))
  expect(await replayRun(ledger, run.id, () => agent as Agent)).toEqual({
    ...{ runId: run.id, events: events.length },
  })
  return events
}

function outcomes(events: readonly RuntimeEvent[]): Readonly<Record<string, unknown>> {
  const [collected] = events.filter((event) => event.type === 'tool_requests_collected')
  return Object.fromEntries(
    (collected?.calls ?? []).map(({ name, plan, refusal }) => [name, refusal?.text ?? plan]),
  )
}

const stopped = (guardrail: string, why: string): string =>
  `The guardrail ${guardrail} stopped this call: ${why}. Nothing was run.`

describe('calls that were checked with a context replay to what was said of them without it', () => {
  it('by tools and by the policy', async () => {
    const policy = { pay: { ask: 'much' }, sell: { deny: 'Never.' }, look: 'ask' as const }
    expect(outcomes(await replayed([], policy, ['weigh']))).toEqual({
      ...{ look: 'ask', weigh: 'No weigh.', pay: 'ask', sell: 'Never.', buy: 'run', tip: 'ask' },
    })
  })

  it('by guardrails that blocked some of them', async () => {
    const guardrails = [
      finds('first', { look: { block: 'Stop' } }),
      finds('second', { tip: { block: 'No tip' } }),
    ]
    expect(outcomes(await replayed(guardrails, { pay: { deny: 'Never.' } }, ['weigh']))).toEqual({
      ...{
        look: stopped('first', 'Stop'),
        weigh: 'No weigh.',
        pay: 'Never.',
        sell: 'run',
        buy: 'run',
        tip: stopped('second', 'No tip'),
      },
    })
  })

  it('by a tool that demands approvers and says no reason, after a guardrail has noted something', async () => {
    const events = await replayed([finds('notes', { tip: { record: 'Hm.' } })], {})
    expect(outcomes(events)).toMatchObject({ look: 'run', tip: 'ask' })
    expect(events.find(({ type }) => type === 'approval_requested')).toMatchObject({
      approvers: [{ count: 2 }],
    })
  })

  it('by a policy that denied what a guardrail had only noted, or changed', async () => {
    const guardrails = [
      finds('notes', { look: { record: 'Hm.' }, weigh: { record: 'Hm.' } }),
      finds('changes', {
        pay: { replace: { at: 'home' } },
        sell: { replace: { bad: true } },
        tip: { replace: {} },
      }),
    ]
    const policy = { look: { deny: 'No look.' }, pay: { deny: 'No pay.' }, tip: { ask: 'much' } }
    const events = await replayed(guardrails, policy)
    expect(outcomes(events)).toEqual({
      ...{ look: 'No look.', weigh: 'run', pay: 'No pay.', sell: 'No sell.', buy: 'run', tip: 'ask' },
    })
    expect(events.filter(({ type }) => type === 'guardrail_tripped')).toHaveLength(5)
  })
})
