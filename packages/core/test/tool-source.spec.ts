import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent, type Tool } from '@tallystick/core'
import { checkLaws, scriptedModel, type ScriptedStep, testTool } from '@tallystick/testkit'
import type { OfferingTurn } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, stage } from './stage.ts'

const call = (name: string): ScriptedStep => ({ toolCalls: [{ name, input: {} }] })
const named = (name: string, description = `Does ${name}.`): Tool => ({
  ...testTool({ name, run: () => `did ${name}` }),
  description,
})

/** Runs an agent whose source is changed by what `after` does at each of its tools' results. */
async function eventsOf(
  steps: readonly ScriptedStep[],
  source: { tools: Tool[] },
  own: readonly Tool[] = [],
): Promise<{
  readonly events: readonly RuntimeEvent[]
  readonly model: ReturnType<typeof scriptedModel>
}> {
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'a', instructions: '', model, tools: own, toolSource: source })
  const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Go.')
  const events: RuntimeEvent[] = []
  for await (const event of run) events.push(event)
  expect(checkLaws(events)).toEqual([])
  return { events, model }
}

const resultsIn = (events: readonly RuntimeEvent[]): readonly string[] =>
  events.flatMap((event) =>
    event.type === 'tool_result'
      ? [`${event.outcome}: ${event.content.map((part) => 'text' in part && part.text).join('')}`]
      : [],
  )

describe('a source of tools', () => {
  it('may change between turns, and each change of what a turn offers is recorded', async () => {
    const source = { tools: [named('one')] }
    const swap = testTool({
      name: 'swap',
      run: () => {
        source.tools = [named('two'), named('one', 'Another.')]
        return 'swapped'
      },
    })
    const { events, model } = await eventsOf([call('swap'), call('two'), { text: 'Done.' }], source, [swap])
    expect(resultsIn(events)).toEqual(['success: swapped', 'success: did two'])
    expect(model.requests.map(({ tools }) => tools.map(({ description }) => description))).toEqual([
      ['The test tool swap.', 'Does one.'],
      ['The test tool swap.', 'Does two.', 'Another.'],
      ['The test tool swap.', 'Does two.', 'Another.'],
    ])
    const sourced = events.flatMap((event) =>
      event.type === 'model_call_started' ? [event.change?.sourced?.map(({ name }) => name)] : [],
    )
    // What has not changed is not recorded again.
    expect(sourced).toEqual([['one'], ['two', 'one'], undefined])
  })

  it('has a call of a tool that is gone answered with the three nearest names', async () => {
    const rest = ['read_node', 'read_not', 'read_note', 'red_notes'].map((name) => named(name))
    const source = { tools: [named('read_notes'), ...rest] }
    const steps = [
      () => {
        source.tools = rest
        return call('read_notes')
      },
      { text: 'Done.' },
    ] as unknown as ScriptedStep[]
    const { events } = await eventsOf(steps, source)
    expect(resultsIn(events)).toEqual([
      expect.stringMatching(
        /^unknown_tool: There is no tool named read_notes.* The nearest are read_note, red_notes, read_node\.$/,
      ),
    ])
  })

  it('does not run a tool that came after the turn had begun', async () => {
    const source = { tools: [named('one')] }
    const steps = [
      () => {
        source.tools = [named('one'), named('late')]
        return call('late')
      },
      { text: 'Done.' },
    ] as unknown as ScriptedStep[]
    const { events } = await eventsOf(steps, source)
    expect(resultsIn(events)).toEqual([expect.stringMatching(/^unknown_tool/)])
  })

  it('that has no tools any more offers none, also to a model that is asked again', async () => {
    const source = { tools: [named('one')] }
    const empty = testTool({ name: 'empty', run: () => ((source.tools = []), 'emptied') })
    const failing: ScriptedStep = { text: 'Half', fail: 'overloaded' }
    const steps = [failing, call('empty'), failing, call('one'), { text: 'Done.' }]
    const set = stage({ steps, tools: [empty], toolSource: source, retry: { maxAttempts: 2, baseMs: 1 } })
    const { runId } = await set.play()
    const events = checkedRun(await set.eventsOf(runId))
    expect(set.model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['empty', 'one'],
      ['empty', 'one'],
      ['empty'],
      ['empty'],
      ['empty'],
    ])
    // Recorded where it has changed, once for all attempts of a turn.
    expect(ofType(events, 'model_call_started').map(({ change }) => change?.sourced?.length)).toEqual([
      ...[1, undefined],
      ...[0, undefined, undefined],
    ])
    expect(resultsIn(events)).toEqual(['success: emptied', expect.stringMatching(/^unknown_tool/)])
  })

  it('is offered as far as a turn names its tools', async () => {
    const source = { tools: [named('one'), named('two')] }
    const set = stage({
      steps: [call('one'), { text: 'Done.' }],
      toolSource: source,
      prepareTurn: ({ turn }) => (turn === 0 ? { tools: ['two'] } : undefined),
    })
    const { runId } = await set.play()
    const events = checkedRun(await set.eventsOf(runId))
    expect(set.model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['two'],
      ['one', 'two'],
    ])
    expect(resultsIn(events)).toEqual([expect.stringMatching(/^unknown_tool.*one/)])
    expect(ofType(events, 'model_call_started').map(({ change }) => change?.sourced?.length)).toEqual([
      2,
      undefined,
    ])
  })

  it('is that of the agent which has the conversation', async () => {
    const second = defineAgent({
      ...{ name: 'second', instructions: '', toolSource: { tools: [named('two')] } },
      model: scriptedModel([{ text: 'Done.' }], 'second-1'),
    })
    const set = stage({
      steps: [call('transfer_to_second')],
      toolSource: { tools: [named('one')] },
      handoffs: [second],
    })
    const { runId, text } = await set.play()
    expect(text).toBe('Done.')
    const events = checkedRun(await set.eventsOf(runId))
    const sourced = ofType(events, 'model_call_started').map(({ change }) =>
      change?.sourced?.map(({ name }) => name),
    )
    expect(sourced).toEqual([['one'], ['two']])
  })

  it('is read again by the process that takes a run over', async () => {
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const steps = [call('pay'), { text: 'Paid.' }]
    const first = stage({ steps, tools: [pay], toolSource: { tools: [named('one')] } })
    const rest = await first.play()
    const later = stage({
      ...{ ledger: first.ledger, clock: first.clock, model: first.model, tools: [pay] },
      toolSource: { tools: [named('two')] },
    })
    const run = later.runtime.resume(rest.runId)
    const [{ toolCallId } = { toolCallId: '' }] = rest.pendingApprovals
    await later.waitUntilSettled(run.approve(toolCallId as never, { by: 'ada' }))
    expect(await later.waitUntilSettled(run.result)).toMatchObject({ text: 'Paid.' })
    const events = checkedRun(await later.eventsOf(rest.runId))
    const sourced = ofType(events, 'model_call_started').map(({ change }) =>
      change?.sourced?.map(({ name }) => name),
    )
    expect(sourced).toEqual([['one'], ['two']])
  })

  it.each([
    ['has another effect', { ...named('pay'), effect: 'write' as const }],
    ['takes another input', { ...named('pay'), inputSchema: { type: 'object', required: ['iban'] } }],
    ['is described otherwise', named('pay', 'Empties an account.')],
  ])('does not run a tool that %s than the one that was checked and approved', async (_how, other) => {
    const asking = { ...named('pay'), check: () => ({ kind: 'ask' }) as const }
    const source = { tools: [asking] as Tool[] }
    const set = stage({ steps: [call('pay'), { text: 'Done.' }], toolSource: source })
    const rest = await set.play()
    source.tools = [{ ...other, check: asking.check }]
    const run = set.runtime.resume(rest.runId)
    const [{ toolCallId } = { toolCallId: '' }] = rest.pendingApprovals
    await set.waitUntilSettled(run.approve(toolCallId as never, { by: 'ada' }))
    await set.waitUntilSettled(run.result)
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(resultsIn(events)).toEqual([
      expect.stringMatching(/^failed: The tool pay is not there any more as it was/),
    ])
  })

  it('counts as input tokens where no provider has reported any', async () => {
    const long = named('long', 'Looks at many things. '.repeat(200))
    const grantOf = async (tools: Tool[]): Promise<number> => {
      const set = stage({ toolSource: { tools }, limits: { maxTotalTokens: 100_000 } })
      const events = await set.eventsOf((await set.play()).runId)
      return ofType(events, 'model_call_started')[0]?.grant.inputTokens ?? 0
    }
    expect((await grantOf([long])) - (await grantOf([]))).toBeGreaterThan(800)
  })

  it('loses a tool whose name another tool of the agent has, and what is not a tool', async () => {
    const source = { tools: [named('own', 'Not the own.'), {} as Tool, named('one'), named('one', 'Twice.')] }
    const { model } = await eventsOf([{ text: 'Done.' }], source, [named('own')])
    expect(model.requests[0]?.tools.map(({ description }) => description)).toEqual(['Does own.', 'Does one.'])
  })

  it('offers what it names of its tools, by the conversation and what was offered before', async () => {
    const turns: [readonly string[], readonly string[]][] = []
    const toolSource = {
      tools: [named('one'), named('two'), named('three')],
      offered: ({ messages, before }: OfferingTurn) => {
        turns.push([messages().map(({ role }) => role), before])
        return messages().length === 1 ? ['two', 'own', 'none', 'one', 'two'] : ['three']
      },
    }
    const set = stage({
      steps: [call('three'), call('three'), { text: 'Done.' }],
      tools: [named('own')],
      toolSource,
    })
    const events = checkedRun(await set.eventsOf((await set.play()).runId))
    expect(turns).toEqual([
      [['user'], []],
      [
        ['user', 'assistant', 'tool'],
        ['two', 'one'],
      ],
      [['user', 'assistant', 'tool', 'assistant', 'tool'], ['three']],
    ])
    expect(set.model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['own', 'two', 'one'],
      ['own', 'three'],
      ['own', 'three'],
    ])
    expect(resultsIn(events)).toEqual([expect.stringMatching(/^unknown_tool/), 'success: did three'])
    expect(ofType(events, 'model_call_started').map(({ change }) => change?.sourced?.length)).toEqual([
      ...[2, 1, undefined],
    ])
  })

  it.each([
    [async () => ['one'], 'returned a promise'],
    [() => 'one', 'its answer is a text; expected a list'],
    [() => [1], 'its answer[0] is 1'],
  ])('whose answer is not a list of names ends the run with what is wrong: %s', async (offered, what) => {
    const toolSource = { tools: [named('one')], offered: offered as unknown as () => string[] }
    await expect(stage({ toolSource }).play()).rejects.toThrow(
      new RegExp(`offered of the toolSource of the agent agent.*${what.replaceAll(/[[\]]/g, '.')}`),
    )
  })

  it('is refused where it is not a source', () => {
    const make = (toolSource: unknown): unknown =>
      defineAgent({ name: 'a', instructions: '', model: scriptedModel([]), toolSource: toolSource as never })
    expect(() => make([])).toThrow('toolSource is a list; expected an object whose tools are a list')
    expect(() => make({ tools: [], offered: ['one'] })).toThrow('toolSource')
  })
})
