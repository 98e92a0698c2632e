// Instructions and tools that an agent's code makes for each turn, of the run's context and its state.
import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ScriptedModel,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

interface App {
  readonly user: string
  readonly isAdmin: boolean
}
const ada: App = { user: 'Ada', isAdmin: true }
const bob: App = { user: 'Bob', isAdmin: false }
const looks = { toolCalls: [{ name: 'look', input: {} }] }

function made(model: ScriptedModel, more: Partial<AgentOptions<string, App>>): Agent<string, App> {
  return defineAgent<string, App>({ name: 'agent', instructions: 'Act.', model, ...more })
}

async function played(agent: Agent<string, App>, context: App) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock, report: () => {} } }).run(agent, 'Go.', { context })
  const result = await waitUntilSettled(clock, run.result)
  return { clock, ledger, run, result, events: checkedRun(await recorded(ledger, run.id)) }
}

describe('instructions of the context and the state', () => {
  it('are made for each turn, and recorded where they differ', async () => {
    const model = scriptedModel([looks, looks, { text: 'Done.' }])
    const { events } = await played(
      made(model, {
        tools: [testTool({ name: 'look' })],
        instructions: ({ user }, state) => `Help ${user}.${(state?.turn ?? 0) > 1 ? ' Hurry.' : ''}`,
      }),
      ada,
    )
    expect(model.requests.map(({ instructions }) => instructions)).toEqual([
      ...['Help Ada.', 'Help Ada.', 'Help Ada. Hurry.'],
    ])
    expect(ofType(events, 'run_started')[0]?.definition.instructions).toBe('Help Ada.')
    expect(ofType(events, 'model_call_started').map(({ change }) => change?.instructions)).toEqual([
      ...[undefined, undefined, 'Help Ada. Hurry.'],
    ])
  })

  it('are seen by prepareTurn, and hold as they began where the function names the context alone', async () => {
    const model = scriptedModel([{ text: 'Done.' }])
    const seen: string[] = []
    const prepareTurn: AgentOptions<string, App>['prepareTurn'] = ({ request }) => {
      seen.push(request.instructions)
      return undefined
    }
    await played(
      made(model, { instructions: (_app, state) => (state ? 'Now.' : 'First.'), prepareTurn }),
      ada,
    )
    const asked: App[] = []
    const once = (app: App): string => {
      asked.push(app)
      return 'Once.'
    }
    await played(made(scriptedModel([looks, { text: 'Done.' }]), { instructions: once, prepareTurn }), bob)
    expect(seen).toEqual(['Now.', 'Once.', 'Once.'])
    expect(asked).toEqual([bob])
  })

  it('reject where they are no text', async () => {
    const instructions = (_app: App, state?: object): string => (state ? (7 as never) : 'First.')
    await expect(played(made(scriptedModel([]), { instructions }), ada)).rejects.toThrow(
      'instructions of the agent agent for turn 1: its answer is 7; expected a text',
    )
  })
})

describe('tools of the context and the state', () => {
  const look = testTool({ name: 'look' })

  it('are those of the turn, on record, and run what was offered', async () => {
    const pays = testTool({ name: 'pay', effect: 'write', run: ({ context }) => (context as App).user })
    const model = scriptedModel([
      { toolCalls: [{ name: 'pay', input: {} }] },
      { toolCalls: [{ name: 'look', input: {} }] },
      { toolCalls: [{ name: 'pay', input: {} }] },
      { text: 'Done.' },
    ])
    const agent = made(model, {
      tools: ({ isAdmin }, { turn }) => (isAdmin && turn === 0 ? [look, pays] : [look]),
    })
    const { events } = await played(agent, ada)
    expect(agent.definition.tools).toEqual([])
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['look', 'pay'],
      ...[['look'], ['look'], ['look']],
    ])
    const calls = ofType(events, 'model_call_started')
    expect(calls.map(({ change }) => change?.sourced?.map(({ name }) => name))).toEqual([
      ...[['look', 'pay'], ['look'], undefined, undefined],
    ])
    expect(ofType(events, 'tool_result').map(({ name, outcome }) => `${name} ${outcome}`)).toEqual([
      ...['pay success', 'look success', 'pay unknown_tool'],
    ])
    const other = scriptedModel([{ text: 'Done.' }])
    await played(made(other, { tools: agent.toolsInTurn! }), bob)
    expect(other.requests[0]?.tools.map(({ name }) => name)).toEqual(['look'])
  })

  it('are asked for again by a process that takes the run up', async () => {
    const ledger = memoryLedger()
    const clock = manualClock()
    const asks = () =>
      testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })
    const agent = (model: ScriptedModel): Agent<string, App> =>
      made(model, { tools: ({ isAdmin }) => (isAdmin ? [asks()] : []) })
    const first = agent(scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }]))
    const run = createRuntime({ ledger, host: { clock } }).run(first, 'Go.', { context: ada })
    const [question] = (await waitUntilSettled(clock, run.result)).pendingApprovals
    const second = agent(scriptedModel([{ text: 'Paid.' }]))
    const resumed = createRuntime({ ledger, agents: [second], host: { clock } }).resume(run.id, {
      ...{ agent: second, context: ada },
    })
    await waitUntilSettled(clock, resumed.approve(question!, { by: 'ada' }))
    expect((await waitUntilSettled(clock, resumed.result)).text).toBe('Paid.')
    const results = ofType(checkedRun(await recorded(ledger, run.id)), 'tool_result')
    expect(results).toMatchObject([{ name: 'pay', outcome: 'success' }])
  })

  it.each<readonly [string, AgentOptions<string, App>['tools'], RegExp]>([
    ['a promise', (() => Promise.resolve([])) as never, /tools of the agent agent returned a promise/],
    ['no list', (() => 'look') as never, /tools of the agent agent: its answer is a text/],
    ['no tool', (() => [{}]) as never, /tools of the agent agent: its answer\[0\]/],
    ['two of one name', () => [look, look], /has two tools named look/],
    [
      'an agent that works as a tool',
      () => [
        agentTool(defineAgent({ name: 'h', description: 'h', instructions: '', model: scriptedModel([]) })),
      ],
      /h is the work of another agent/,
    ],
  ])('reject where the function answers %s', async (_what, tools, error) => {
    await expect(played(made(scriptedModel([]), { tools }), ada)).rejects.toThrow(error)
  })

  it('are refused where they are async, or a toolSource is beside them', () => {
    const model = scriptedModel([])
    expect(() => made(model, { tools: (async () => []) as never })).toThrow(/tools is an async function/)
    expect(() => made(model, { tools: () => [], toolSource: { tools: [] } })).toThrow(
      /tools is a function, and toolSource is given/,
    )
  })
})
