import { ConfigurationError, createRuntime, defineAgent, memoryLedger, type Tool } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { defineTool, waitFor, waitTool } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'

function world(tool: Tool, ...inputs: readonly { readonly [name: string]: string }[]) {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  const calls = inputs.map((input) => ({ toolCalls: [{ name: tool.name, input }] }))
  const model = scriptedModel([...calls, { text: 'Done.' }])
  const agent = defineAgent({ name: 'clerk', instructions: 'Wait.', model, tools: [tool] })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'Go.')
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
  const results = async () =>
    (await Array.fromAsync(ledger.read(run.id))).flatMap((event) =>
      event.type === 'tool_result' ? [[event.outcome, event.content[0]]] : [],
    )
  return { clock, runtime, run, settled, results }
}

describe('a tool with which a model waits', () => {
  const tool = waitTool({ events: { paid: 'The order is paid.', sent: 'It has left.' }, maxMs: 60_000 })

  it('waits for the event that the model names, and refuses one that it does not have', async () => {
    expect(tool.description).toContain('- paid: The order is paid.\n- sent: It has left.')
    const { runtime, run, settled, results } = world(tool, { event: 'lost' }, { event: 'paid' })
    expect(await settled(run.result)).toMatchObject({ status: 'suspended' })
    expect(await settled(runtime.signal('sent', 'no'))).toEqual([])
    expect(await settled(runtime.signal('paid', { usd: 5 }))).toEqual([run.id])
    expect(await settled(run.result)).toMatchObject({ status: 'done', text: 'Done.' })
    expect(await results()).toEqual([
      ['invalid_input', expect.anything()],
      ['success', { type: 'text', text: '{"usd":5}' }],
    ])
  })

  it('ends the wait after the longest time', async () => {
    const { clock, runtime, run, settled, results } = world(tool, { event: 'paid' })
    expect(await settled(run.result)).toMatchObject({ wakeAt: clock.now() + 60_000 })
    clock.advance(60_000)
    expect(await settled(runtime.drive(run.id))).toMatchObject({ status: 'done' })
    expect(await results()).toEqual([['timed_out', expect.anything()]])
  })
})

it('a tool waits until a time by the clock that it is given', async () => {
  const clock = manualClock()
  const until = new Date(clock.now() + 5_000)
  const tool = defineTool({
    name: 'wait',
    description: 'Waits.',
    input: { type: 'object' },
    effect: 'read',
    execute: () => waitFor('paid', { until, now: () => clock.now() }),
  })
  const { run, settled } = world(tool, {})
  expect(await settled(run.result)).toMatchObject({ status: 'suspended', wakeAt: until.getTime() })
})

it.each([
  ['no event', () => waitTool({ events: {} }), 'waitTool: events has no event for a model to wait for'],
  ['no list', () => waitTool({} as never), 'waitTool: events is missing'],
  ['an event without a meaning', () => waitTool({ events: { paid: '' } }), 'events.paid is an empty text'],
  ['two lines', () => waitTool({ events: { 'a\nb': 'x' } }), 'a name of at most 200 characters in one line'],
  ['no time', () => waitTool({ events: { a: 'x' }, maxMs: 0 }), 'maxMs is 0'],
  ['no name', () => waitFor(''), 'waitFor: the name of the event is an empty text'],
  ['no date', () => waitFor('a', { until: new Date(Number.NaN) }), 'until is an invalid Date'],
  ['another name', () => waitFor('a', { deadline: 1 } as never), 'Did you mean until?'],
])('a wait is refused where it could never end, or begin: %s', (_, wait, message) => {
  expect(wait).toThrow(ConfigurationError)
  expect(wait).toThrow(message)
})
