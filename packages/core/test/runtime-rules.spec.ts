// What a runtime says over each of its agents, beside what they say: guardrails, the filter of handoffs, prepared turns.
import { describe, expect, it } from 'vitest'
import {
  type Agent,
  type AgentOptions,
  agentTool,
  createRuntime,
  defineAgent,
  defineGuardrail,
  handoff,
  memoryLedger,
  type Message,
  type PrepareTurn,
  type RuntimeOptions,
  joinText,
  withRuntimeRules,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { joinPreparations } from '../src/agent/prepare-turn.ts'
import { isAsync } from '../src/values/option.ts'
import { checkedRun, ofType, recorded } from './stage.ts'

const note = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const said = (messages: readonly Message[]): readonly string[] =>
  messages.map((message) => (message.role === 'tool' ? 'results' : joinText(message.parts)))

async function played(agent: Agent<unknown>, rules: Omit<RuntimeOptions, 'ledger'>, input = 'Go.') {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const runtime = createRuntime({ ledger, host: { clock }, ...rules })
  const result = await waitUntilSettled(clock, runtime.run(agent, input).result)
  const events = checkedRun(await recorded(ledger, result.runId))
  return { clock, ledger, result, events }
}

const rewrites = (name: string) =>
  defineGuardrail({ name, on: 'input', check: ({ text }) => ({ replace: `${text} ${name}` }) })

describe('guardrails of a runtime', () => {
  it('look before those of the agent, and are part of its definition', async () => {
    const model = scriptedModel([{ text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Act.', model, guardrails: [rewrites('own')] })
    const { events } = await played(agent, { guardrails: [rewrites('all')] })
    expect(said(model.requests[0]!.messages)).toEqual(['Go. all own'])
    const [started] = ofType(events, 'run_started')
    expect(started?.definition.guardrails).toEqual([
      { name: 'all', on: 'input' },
      { name: 'own', on: 'input' },
    ])
    expect(started?.definition.digest).not.toBe(agent.definition.digest)
    expect(withRuntimeRules(agent, { guardrails: [rewrites('all')] }).definition).toEqual(started?.definition)
    expect(withRuntimeRules(agent, {}).definition).toEqual(agent.definition)
  })

  it('hold over agents that take over, and over agents that work as tools', async () => {
    const blocked: string[] = []
    const cap = defineGuardrail({
      name: 'cap',
      on: 'tool_input',
      check: ({ name }, { agent }) => {
        if (name !== 'pay') return 'pass'
        blocked.push(agent)
        return { block: 'no money' }
      },
    })
    const pay = testTool({ name: 'pay', effect: 'write' })
    const pays = { toolCalls: [{ name: 'pay', input: {} }] }
    const part = (name: string, more: Partial<AgentOptions> = {}) =>
      defineAgent({
        ...{ name, description: name, instructions: 'Act.', tools: [pay] },
        model: scriptedModel([pays, { text: `${name} is done.` }]),
        ...more,
      })
    const helper = part('helper')
    const clerk = part('clerk')
    const lead = part('lead', {
      tools: [agentTool(helper)],
      handoffs: [clerk],
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { task: 'Pay.' } }] },
        { toolCalls: [{ name: 'transfer_to_clerk', input: {} }] },
      ]),
    })
    const { result } = await played(lead, { guardrails: [cap] })
    expect(result).toMatchObject({ reason: 'answered', text: 'clerk is done.' })
    expect(blocked).toEqual(['helper', 'clerk'])
    expect(pay.runs).toEqual([])
  })

  it('are refused where an agent has one of the same name, or one is not a guardrail', () => {
    const model = scriptedModel([])
    const agent = defineAgent({ name: 'a', instructions: '', model, guardrails: [rewrites('own')] })
    const ledger = memoryLedger()
    expect(() => createRuntime({ ledger, agents: [agent], guardrails: [rewrites('own')] })).toThrow(
      'Agent a has two guardrails named own',
    )
    expect(() => createRuntime({ ledger, guardrails: [{}] as never })).toThrow(
      /guardrails\[0\]\.name is missing/,
    )
  })
})

describe('the filter of handoffs of a runtime', () => {
  const office = (filter?: (messages: readonly Message[]) => readonly Message[]) => {
    const model = scriptedModel([{ text: 'Done.' }])
    const clerk = defineAgent({ name: 'clerk', description: 'Ends it.', instructions: 'End.', model })
    const steps = [{ text: 'Over.', toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }]
    const desk = defineAgent({
      ...{ name: 'desk', instructions: 'Hand over.', model: scriptedModel(steps) },
      handoffs: [filter ? handoff(clerk, { filter }) : clerk],
    })
    return { desk, model }
  }
  const inShort = (text: string) => (): readonly Message[] => [note(text)]

  it('says what the next agent sees, where the handoff says nothing', async () => {
    const { desk, model } = office()
    const { events } = await played(desk, { handoffFilter: inShort('of the runtime') })
    expect(said(model.requests[0]!.messages)).toEqual(['of the runtime'])
    expect(ofType(events, 'agent_handed_off')[0]?.messages).toEqual([note('of the runtime')])
    const [rules, all] = [withRuntimeRules(desk, { handoffFilter: inShort('x') }).rules, [note('Go.')]]
    expect(rules.handOff?.('transfer_to_clerk', all)?.messages).toEqual([note('x')])
    expect(rules.handOff?.('transfer_to_clerk', all)?.definition.instructions).toBe('End.')
  })

  it('yields to that of the handoff', async () => {
    const { desk, model } = office(inShort('of the handoff'))
    await played(desk, { handoffFilter: inShort('of the runtime') })
    expect(said(model.requests[0]!.messages)).toEqual(['of the handoff'])
  })

  it('is refused where it is async', () => {
    const handoffFilter = (async () => []) as never
    expect(() => createRuntime({ ledger: memoryLedger(), handoffFilter })).toThrow(
      'createRuntime: handoffFilter is an async function',
    )
  })
})

describe('turns that a runtime prepares', () => {
  const first: PrepareTurn = ({ request }) => ({
    messages: [...request.messages, note('of the agent')],
    tools: ['look'],
    modelSettings: { seed: 1, temperature: 0.1 },
  })
  const second: PrepareTurn = ({ request }) => ({
    ...request,
    instructions: `${request.instructions} ${request.tools.map(({ name }) => name).join()} ${request.modelSettings?.seed}`,
    messages: [...request.messages, note('of the runtime')],
    modelSettings: { temperature: 0.2 },
  })
  const later =
    (prepare: PrepareTurn): PrepareTurn =>
    async (turn, context) => {
      await Promise.resolve()
      return prepare(turn, context)
    }
  const nothing: PrepareTurn = () => undefined
  const tools = [testTool({ name: 'look' }), testTool({ name: 'pay' })]

  it.each<readonly [string, PrepareTurn, PrepareTurn]>([
    ['at once', first, second],
    ['where the agent waits', later(first), second],
    ['where the runtime waits', first, later(second)],
    ['where both wait', later(first), later(second)],
    ['where the agent answers a promise', (turn) => Promise.resolve(first(turn, undefined)), second],
  ])('are those that the agent has prepared, %s', async (_how, prepareTurn, ofRuntime) => {
    const model = scriptedModel([{ text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Act.', model, tools, prepareTurn })
    const { events } = await played(agent, { prepareTurn: ofRuntime })
    const [request] = model.requests
    expect(said(request!.messages)).toEqual(['Go.', 'of the agent', 'of the runtime'])
    expect(request).toMatchObject({
      ...{ instructions: 'Act. look 1', tools: [{ name: 'look' }] },
      modelSettings: { seed: 1, temperature: 0.2 },
    })
    expect(ofType(events, 'model_call_started')[0]?.change?.shown?.pieces).toEqual([
      { from: 0, to: 1 },
      { messages: [note('of the agent'), note('of the runtime')] },
    ])
  })

  it.each<readonly [string, PrepareTurn | undefined, PrepareTurn | undefined, readonly string[]]>([
    ['the agent alone', first, undefined, ['Go.', 'of the agent']],
    ['the runtime alone', undefined, second, ['Go.', 'of the runtime']],
    ['the agent, as the runtime changes nothing', first, nothing, ['Go.', 'of the agent']],
    ['the runtime, as the agent changes nothing', nothing, second, ['Go.', 'of the runtime']],
    ['neither', nothing, nothing, ['Go.']],
  ])('are prepared by %s', async (_who, prepareTurn, ofRuntime, messages) => {
    const model = scriptedModel([{ text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Act.', model, tools, prepareTurn })
    await played(agent, { prepareTurn: ofRuntime })
    expect(said(model.requests[0]!.messages)).toEqual(messages)
  })

  it('show without a call whether they wait', () => {
    expect([later(first), first].map((mine) => isAsync(joinPreparations(mine, second)))).toEqual([
      true,
      false,
    ])
    expect(isAsync(joinPreparations(first, later(second)))).toBe(true)
    expect(joinPreparations(undefined, undefined)).toBeUndefined()
    expect(joinPreparations(first, undefined)).toBe(first)
    expect(joinPreparations(undefined, first)).toBe(first)
  })
})
