import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent, type Tool } from '@tallystick/core'
import { checkLaws, scriptedModel, type ScriptedStep, testTool } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'

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
  it('may change between turns, and each turn records what it offered', async () => {
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
    expect(sourced).toEqual([['one'], ['two', 'one'], ['two', 'one']])
  })

  it('has a call of a tool that is gone answered with the nearest names', async () => {
    const source = { tools: [named('read_notes'), named('read_note')] }
    const steps = [
      () => {
        source.tools = [named('read_note')]
        return call('read_notes')
      },
      { text: 'Done.' },
    ] as unknown as ScriptedStep[]
    const { events } = await eventsOf(steps, source)
    expect(resultsIn(events)).toEqual([
      expect.stringMatching(/^unknown_tool: There is no tool named read_notes.*read_note/),
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

  it('loses a tool whose name another tool of the agent has, and what is no tool', async () => {
    const source = { tools: [named('own', 'Not the own.'), {} as Tool, named('one'), named('one', 'Twice.')] }
    const { model } = await eventsOf([{ text: 'Done.' }], source, [named('own')])
    expect(model.requests[0]?.tools.map(({ description }) => description)).toEqual(['Does own.', 'Does one.'])
  })

  it('is refused where it is no source', () => {
    const make = (toolSource: unknown): unknown =>
      defineAgent({ name: 'a', instructions: '', model: scriptedModel([]), toolSource: toolSource as never })
    expect(() => make([])).toThrow('toolSource is a list; expected an object whose tools are a list')
  })
})
