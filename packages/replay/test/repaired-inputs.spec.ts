// Inputs that were repaired are repaired again: by the tools of today, or as it is on record where these are not there.
import {
  createRuntime,
  defineAgent,
  defineGuardrail,
  memoryLedger,
  type AgentOptions,
  type Tool,
} from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'

/** Takes `{ n: 1 }`, and makes that of everything but `{ n: 0 }`. */
function picky(isGuess: boolean): Tool {
  const tool = testTool({
    name: 'pick',
    effect: 'write',
    check: ({ n }) =>
      typeof n === 'number'
        ? { kind: 'run' }
        : { kind: 'refuse', outcome: 'invalid_input', text: 'No number.' },
  })
  const repair: Tool['repair'] = ({ input }) =>
    'no' in input ? undefined : { input: { n: 1 }, repairs: ['a mistake'], isGuess }
  return { ...tool, repair }
}

async function played(isGuess: boolean, more: (tool: Tool) => Partial<AgentOptions<string, unknown>>) {
  const ledger = memoryLedger()
  const inputs = ['{n:1', { n: '1' }, { n: 5 }, { no: 1 }]
  const model = scriptedModel([
    { toolCalls: inputs.map((input) => ({ name: 'pick', input: input as string })) },
    { text: 'Done.' },
  ])
  const agent = defineAgent({ name: 'a', instructions: '', model, ...more(picky(isGuess)) } as AgentOptions)
  const runtime = createRuntime({ ledger, agents: [agent] })
  const run = runtime.run(agent, 'Go.', { context: { user: 'ada' } })
  let { pendingApprovals, status } = await run.result
  const asked = pendingApprovals.map(({ reason }) => reason)
  while (status === 'suspended') {
    const next = runtime.resume(run.id, { context: { user: 'ada' } })
    for (const approval of pendingApprovals) await next.approve(approval, { by: 'ada' })
    ;({ pendingApprovals, status } = await next.result)
  }
  const events = await Array.fromAsync(ledger.read(run.id))
  const calls = events.find((event) => event.type === 'tool_requests_collected')?.calls
  /** What differs in a replay, 0 where nothing does. */
  const replayed = async (options: object) => {
    const { divergence, events: same } = await replayRun(ledger, run.id, () => agent, options)
    return divergence ?? same - events.length
  }
  return { asked, calls, replayed }
}

const note = "The model's input did not fit and was repaired: a mistake."

describe.each([
  ['that are sure', false],
  ['that are guesses', true],
])('repairs %s', (_how, isGuess) => {
  it('of tools of the agent replay with its code and without the context', async () => {
    const { asked, calls, replayed } = await played(isGuess, (tool) => ({ tools: [tool] }))
    expect(asked).toEqual(isGuess ? [note, note] : [])
    expect(calls?.map(({ input, repairs }) => [input, repairs?.length])).toEqual([
      [{ n: 1 }, 1],
      [{ n: 1 }, 1],
      [undefined, undefined],
      [undefined, undefined],
    ])
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })

  it('of tools of a source replay where the source has no tools any more', async () => {
    const source = { tools: [] as Tool[] }
    const { replayed } = await played(isGuess, (tool) => {
      source.tools = [tool]
      return { toolSource: source }
    })
    source.tools = []
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })

  it('that a guardrail changed after that replay as well', async () => {
    const more = defineGuardrail({
      ...{ name: 'more', on: 'tool_input' },
      check: ({ input }: { readonly input: { readonly n?: unknown } }) =>
        input.n === 1 ? { replace: { n: 2 } } : 'pass',
    })
    const { calls, replayed } = await played(isGuess, (tool) => ({ tools: [tool], guardrails: [more] }))
    expect(calls?.[0]).toMatchObject({ input: { n: 2 }, repairs: ['a mistake'] })
    expect(await replayed({ context: { user: 'ada' } })).toBe(0)
    expect(await replayed({})).toBe(0)
  })
})
