import { expect, it, describe } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  handoff,
  memoryLedger,
  type Agent,
  type Ledger,
  type RuntimeEvent,
} from '@tallystick/core'
import { type ToolRun } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, recorded } from './stage.ts'

interface App {
  readonly user: string
  readonly database: { readonly reads: string[] }
}

const app = (user = 'Ada Lovelace'): App => ({ user, database: { reads: [] } })
const call = (name: string): ScriptedStep => ({ toolCalls: [{ name, input: {} }] })

/** What code of an agent was given as context, by where it was asked. */
type Seen = [string, unknown][]

function lookTool(seen: Seen, options: Partial<Parameters<typeof testTool>[0]> = {}) {
  const tool = testTool({ name: 'look', ...options })
  const own = tool.run.bind(tool)
  return {
    ...tool,
    check: (input: object, context: { readonly context: unknown }) => {
      seen.push(['check', context.context])
      return tool.check(input as never, context as never)
    },
    run: (started: ToolRun<App>) => {
      seen.push(['tool', started.context])
      return own(started)
    },
  }
}

function play(agents: readonly Agent<unknown>[], ledger: Ledger = memoryLedger()) {
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents, host: { clock } })
  return {
    clock,
    ledger,
    runtime,
    waitUntilSettled: <T>(promise: Promise<T>) => waitUntilSettled(clock, promise),
  }
}

const everyPlace = ['approval', 'check', 'input', 'instructions', 'output', 'prepareTurn', 'stopWhen', 'tool']

function watchful(seen: Seen, steps: readonly ScriptedStep[], name = 'watchful') {
  const saw =
    <T>(place: string, answer: T) =>
    (_subject: unknown, { context }: { readonly context: unknown }): T => {
      seen.push([place, context])
      return answer
    }
  return defineAgent({
    name,
    description: 'Watches.',
    model: scriptedModel(steps),
    instructions: (context: App) => {
      seen.push(['instructions', context])
      return `You help ${context.user}.`
    },
    tools: [lookTool(seen)],
    approval: ({ context }) => {
      seen.push(['approval', context])
      return 'run'
    },
    guardrails: [
      { name: 'in', on: 'input', check: saw('input', 'pass' as const) },
      { name: 'out', on: 'output', check: saw('output', 'pass' as const) },
    ],
    stopWhen: (_state, context) => {
      seen.push(['stopWhen', context])
      return false
    },
    prepareTurn: (_state, context) => {
      seen.push(['prepareTurn', context])
      return undefined
    },
  })
}

describe('the context of a run', () => {
  it('reaches every place where the agent’s code is asked, as it was given', async () => {
    const seen: Seen = []
    const agent = watchful(seen, [call('look'), { text: 'Done.' }])
    const { runtime, waitUntilSettled: wait } = play([agent])
    const context = app()
    expect(await wait(runtime.run(agent, 'Go.', { context }).result)).toMatchObject({ text: 'Done.' })
    expect([...new Set(seen.map(([place]) => place))].toSorted()).toEqual(everyPlace)
    for (const [, given] of seen) expect(given).toBe(context)
  })

  it('is in no event, and neither is what it holds but in the instructions that were made of it', async () => {
    const agent = watchful([], [call('look'), { text: 'Done.' }])
    const { runtime, ledger, waitUntilSettled: wait } = play([agent])
    const secret = { ...app(), database: { reads: ['a handle that is nobody’s business'] } }
    const run = runtime.run(agent, 'Go.', { context: secret })
    await wait(run.result)
    const events = checkedRun(await recorded(ledger, run.id))
    expect(JSON.stringify(events)).not.toContain('nobody’s business')
    const [started] = events
    expect(started).toMatchObject({
      withContext: true,
      definition: { instructions: 'You help Ada Lovelace.' },
    })
  })

  it('reaches the agents that take over and the child runs', async () => {
    const seen: Seen = []
    const helper = watchful(seen, [call('look'), { text: 'Helped.' }], 'helper')
    const next = watchful(seen, [{ text: 'Taken over.' }], 'next')
    const agent = defineAgent({
      name: 'first',
      instructions: 'Begin.',
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { task: 'Help.' } }] },
        call('transfer_to_next'),
      ]),
      tools: [agentTool(helper)],
      handoffs: [handoff(next)],
    })
    const { runtime, ledger, waitUntilSettled: wait } = play([agent])
    const context = app()
    const run = runtime.run(agent, 'Go.', { context })
    expect(await wait(run.result)).toMatchObject({ text: 'Taken over.', agent: 'next' })
    expect(seen.filter(([place]) => place === 'instructions')).toHaveLength(2)
    for (const [, given] of seen) expect(given).toBe(context)
    const handed = (await recorded(ledger, run.id)).find(({ type }) => type === 'agent_handed_off')
    expect(handed).toMatchObject({ definition: { instructions: 'You help Ada Lovelace.' } })
  })

  it('has to be given again to continue, and is refused by name where it is not', async () => {
    const seen: Seen = []
    const asking = lookTool(seen, { check: () => ({ kind: 'ask' }) })
    const make = (steps: readonly ScriptedStep[]) =>
      defineAgent({ name: 'a', instructions: '', model: scriptedModel(steps), tools: [asking] })
    const one = play([])
    const first = make([call('look')])
    const run = one.runtime.run(first, 'Go.', { context: app('Ada') })
    const [pending] = (await one.waitUntilSettled(run.result)).pendingApprovals
    const two = play([make([{ text: 'Done.' }])], one.ledger)
    const blind = two.runtime.resume(run.id)
    await expect(two.waitUntilSettled(blind.result)).rejects.toThrow(
      'was started with a context of its application',
    )
    expect(await recorded(one.ledger, run.id)).toHaveLength((await recorded(two.ledger, run.id)).length)
    const context = app('Grace')
    const resumed = two.runtime.resume(run.id, { context })
    await two.waitUntilSettled(resumed.result)
    await two.waitUntilSettled(resumed.approve(pending?.toolCallId ?? '', { by: 'maria' }))
    expect(await two.waitUntilSettled(resumed.result)).toMatchObject({ status: 'done', text: 'Done.' })
    expect(seen.at(-1)).toEqual(['tool', context])
  })

  it.each([
    ['from a child run to its parent', (_top: string, below: string) => below],
    ['from the root run to its child', (top: string) => top],
  ])('comes along %s', async (_way, resumedOf) => {
    const seen: Seen = []
    const asking = lookTool(seen, { check: () => ({ kind: 'ask' }) })
    const helper = defineAgent({
      ...{ name: 'helper', description: 'Helps.', instructions: '', tools: [asking] },
      model: scriptedModel([call('look'), { text: 'Helped.' }]),
    })
    const top = defineAgent({
      ...{ name: 'top', instructions: '', tools: [agentTool(helper), lookTool(seen, { name: 'glance' })] },
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { task: 'Help.' } }] },
        call('glance'),
        { text: 'Done.' },
      ]),
    })
    const one = play([top])
    const run = one.runtime.run(top, 'Go.', { context: app() })
    const [pending] = (await one.waitUntilSettled(run.result)).pendingApprovals
    const two = play([top], one.ledger)
    const child = [...(await idsOf(one.ledger))].find((id) => id !== run.id) ?? ''
    const context = app('Grace')
    const resumed = two.runtime.resume(resumedOf(run.id, child), { context })
    await two.waitUntilSettled(resumed.result)
    await two.waitUntilSettled(resumed.approve(pending?.toolCallId ?? '', { by: 'maria' }))
    await two.waitUntilSettled(two.runtime.idle())
    expect(seen.filter(([place]) => place === 'tool')).toEqual([
      ['tool', context],
      ['tool', context],
    ])
  })

  it('is the fork’s own, and that of the caller that settles a call', async () => {
    const seen: Seen = []
    const agent = watchful(seen, [call('look'), { text: 'Done.' }, call('look'), { text: 'Again.' }])
    const { runtime, ledger, waitUntilSettled: wait } = play([agent])
    const run = runtime.run(agent, 'Go.', { context: app('Ada') })
    await wait(run.result)
    const blind = runtime.fork(run.id, { atSeq: 2 })
    await expect(wait(blind.result)).rejects.toThrow('a context of its application')
    expect(await recorded(ledger, blind.id)).toEqual([])
    seen.length = 0
    const context = app('Grace')
    await wait(runtime.fork(run.id, { atSeq: 2, agent, context }).result)
    expect(seen.find(([place]) => place === 'prepareTurn')).toEqual(['prepareTurn', context])
  })

  it('is not asked for where a run had none', async () => {
    const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
    const { runtime, ledger, waitUntilSettled: wait } = play([agent])
    const run = runtime.run(agent, 'Go.')
    await wait(run.result)
    expect((await recorded(ledger, run.id))[0]).not.toHaveProperty('withContext')
    expect(await wait(play([agent], ledger).runtime.resume(run.id).result)).toMatchObject({ text: 'Done.' })
  })
})

describe('instructions that are made for a run', () => {
  const make = (instructions: unknown) =>
    defineAgent({ name: 'a', model: scriptedModel([]), instructions: instructions as () => string })

  it('are asked for once, recorded, and hold when the run continues, whatever is given then', async () => {
    const asking = testTool({ name: 'look', check: () => ({ kind: 'ask' }) })
    const model = scriptedModel([call('look'), { text: 'Done.' }])
    const make = () =>
      defineAgent({ name: 'a', model, tools: [asking], instructions: ({ user }: App) => `You help ${user}.` })
    const one = play([])
    const run = one.runtime.run(make(), 'Go.', { context: app('Ada') })
    const [pending] = (await one.waitUntilSettled(run.result)).pendingApprovals
    const two = play([], one.ledger)
    const resumed = two.runtime.resume(run.id, { agent: make(), context: app('Grace') })
    await two.waitUntilSettled(resumed.result)
    await two.waitUntilSettled(resumed.approve(pending?.toolCallId ?? '', { by: 'maria' }))
    await two.waitUntilSettled(resumed.result)
    expect(model.requests.map(({ instructions }) => instructions)).toEqual(Array(2).fill('You help Ada.'))
    const events = checkedRun(await recorded(one.ledger, run.id))
    // Nothing has drifted: what was made of the context is not compared with what would be made now.
    const resumes = events.filter((event) => event.type === 'run_resumed')
    expect(resumes.map((event: RuntimeEvent) => 'definition' in event)).toEqual(resumes.map(() => false))
  })

  it.each([
    ['7', () => 7, 'instructions of the agent a: its answer is 7; expected a text'],
    ['a promise', () => Promise.resolve('x'), 'instructions of the agent a returned a promise'],
  ])('are refused where they are %s and no text, before anything is written', async (_what, given, said) => {
    const { runtime, ledger } = play([])
    expect(() => runtime.run(make(given), 'Go.')).toThrow(said)
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
  })

  it('are refused where they would come later', () => {
    expect(() => make(async () => 'x')).toThrow('instructions is an async function')
  })
})

describe('the agent of a run that is taken up', () => {
  it('need not be known before, and is refused where the run is another’s', async () => {
    const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel([{ text: 'Done.' }]) })
    const other = defineAgent({ name: 'b', instructions: '', model: scriptedModel([]) })
    const one = play([])
    const run = one.runtime.run(agent, 'Go.')
    await one.waitUntilSettled(run.result)
    const two = play([], one.ledger)
    expect(await two.waitUntilSettled(two.runtime.resume(run.id, { agent }).result)).toMatchObject({
      output: 'Done.',
    })
    await expect(two.waitUntilSettled(two.runtime.resume(run.id, { agent: other }).result)).rejects.toThrow(
      'is a run of the agent a, and b was given to read its result',
    )
  })
})

async function idsOf(ledger: Ledger): Promise<ReadonlySet<string>> {
  const ids = new Set<string>()
  for await (const { runId } of ledger.runs()) ids.add(runId)
  return ids
}
