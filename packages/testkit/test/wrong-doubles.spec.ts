// What the doubles of a test are given, in plain JavaScript: one that does nothing would leave the test green.
import { describe, expect, it } from 'vitest'
import { ConfigurationError, defineAgent, memoryLedger } from '@tallystick/core'
import * as testing from '@tallystick/testkit'

const { checkBudgets, checkLaws, checkTranscript, manualClock, mortalLedger, scriptedModel } = testing
const { callTool, seededRandom, simulate, testTool, waitUntilSettled } = testing

const paying = (): testing.TestTool =>
  testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
const step: testing.ScriptedStep = ({ messages }) =>
  messages.at(-1)?.role === 'tool' ? { text: 'Paid.' } : { toolCalls: [{ name: 'pay', input: { usd: 5 } }] }
const simulated = (more: object): Promise<testing.Simulated> =>
  simulate({
    ...{ ledger: memoryLedger(), clock: manualClock(), random: seededRandom(1), input: 'Go.' },
    agentOf: () =>
      defineAgent({
        ...{ name: 'agent', instructions: 'Pay.', tools: [paying()] },
        model: scriptedModel([step, step, step]),
      }),
    ...more,
  })

const simulations: readonly (readonly [string, object, string])[] = [
  ['crashes by another name', { crash: [{ append: 3 }] }, 'crash is not an option. Did you mean crashes?'],
  ['a place that is a text', { crashes: [{ append: '3', stored: true }] }, 'crashes[0].append is a text'],
  ['a place that is not a number', { crashes: [{ append: NaN, stored: true }] }, 'crashes[0].append is NaN'],
  ['a place that no process reaches', { crashes: [{ append: 0, stored: true }] }, 'of at least 1'],
  ['a place by another name', { crashes: [{ at: 3, stored: true }] }, 'Did you mean crashes[0].append?'],
  ['half a crash', { crashes: [{ append: 3 }] }, 'crashes[0].stored is missing: give true or false'],
  ['a number of crashes', { crashes: 5 }, 'crashes is 5; expected a list'],
  ['a decision in the place of its function', { decide: 5 }, 'decide is 5; expected a function'],
  ['a cancel that never comes', { cancelAtSeq: '5' }, 'cancelAtSeq is a text'],
  ['a drain that never comes', { drainAtSeq: 1.5 }, 'drainAtSeq is 1.5'],
  [
    'an input without its place',
    { inputs: [{ seq: 3, delivery: 'steer' }] },
    'Did you mean inputs[0].atSeq?',
  ],
  ['a clock that no test moves', { clock: { now: () => 0, schedule: () => () => {} } }, 'manualClock()'],
  ['an option that there is not', { foo: 1 }, 'simulate: foo is not an option. Options are ledger, clock, '],
]

describe('a simulation is refused', () => {
  it.each(simulations)('with %s', async (_name, more, message) => {
    await expect(simulated(more)).rejects.toThrow(ConfigurationError)
    await expect(simulated(more)).rejects.toThrow(message)
  })

  it('of nothing', async () => {
    await expect(simulate({} as never)).rejects.toThrow('simulate: agentOf is missing: give a function')
    await expect(simulate(undefined as never)).rejects.toThrow('simulate: what it was given is missing')
  })

  it('whose person answers neither yes nor no', async () => {
    await expect(simulated({ decide: () => 'yes' })).rejects.toThrow('what decide returned is a text')
    await expect(simulated({ decide: () => ({ approved: true }) })).rejects.toThrow('Did you mean')
    await expect(simulated({ decide: () => ({ approve: false }) })).rejects.toThrow(
      'reason that decide returned',
    )
  })

  it('and is played where it is sound, whatever is undefined', async () => {
    const crashes = [{ append: 2, stored: true }]
    const { result, processes } = await simulated({ crashes, decide: undefined, cancelAtSeq: undefined })
    expect([result.text, processes]).toEqual(['Paid.', 2])
  })
})

const crashed = (crash: unknown) => () => mortalLedger(memoryLedger(), crash as never)
const tool = (options?: unknown) => () => testTool(options as never)

const doubles: readonly (readonly [string, () => unknown, string])[] = [
  ['a crash that is a number', crashed(5), 'mortalLedger: the crash is 5; expected an object'],
  ['a crash of another kind', crashed({ foo: 1 }), 'the crash.foo is not an option'],
  ['a crash before the first append', crashed({ append: -1, stored: true }), 'the crash.append is -1'],
  ['no ledger to die', () => mortalLedger(5 as never), 'the ledger is 5; expected a ledger, such as'],
  ['a tool of nothing', tool(), 'testTool: what it was given is missing'],
  ['a tool that is a number', tool(5), 'testTool: what it was given is 5'],
  ['a tool without a name', tool({}), 'name is missing'],
  ['a tool whose name is misspelt', tool({ nam: 'x' }), 'Did you mean name?'],
  ['an effect that there is not', tool({ name: 'x', effect: 'foo' }), "effect is 'foo'; use one of 'read'"],
  ['what a real tool calls it', tool({ name: 'x', execute: () => 'x' }), 'Did you mean run?'],
  ['a clock that begins with a text', () => manualClock('x' as never), 'startMs is a text'],
  ['a clock that begins with no number', () => manualClock(NaN), 'manualClock: startMs is NaN'],
  ['a time that is not a number', () => manualClock().advance(NaN), 'ms is NaN'],
  ['a seed that is a text', () => seededRandom('x' as never), 'seededRandom: the seed is a text'],
  ['laws of a number', () => checkLaws(5 as never), 'checkLaws: events is 5; expected a list'],
  ['laws of nothing', () => checkLaws([{}] as never), 'events[0] is an object; expected an event'],
  ['a record of nothing', () => testing.given(undefined as never), 'given: events is missing'],
  ['a record of texts', () => testing.given(['x'] as never), 'events[0] is a text'],
  [
    'a record of a slip',
    () => testing.given([{ type: 'run_startd' }] as never),
    "Did you mean 'run_started'?",
  ],
  ['no message', () => testing.given([]).when(undefined as never), 'when of given: the message is missing'],
  [
    'a message of a slip',
    () => testing.given([]).when({ type: 'cancle' } as never),
    'expected a command or a signal',
  ],
  [
    'a stamp of a slip',
    () => testing.given([]).when({ type: 'cancel' }, { now: 5 } as never),
    'the stamp.now is no',
  ],
  ['a time of no number', () => testing.given([]).pending(NaN), 'pending of given: afterMs is NaN'],
  ['budgets of one run', () => checkBudgets([{}] as never), 'checkBudgets: runs[0] is an object'],
  ['a transcript of no messages', () => checkTranscript(['x'] as never), 'messages[0] is a text'],
]

describe('a double is refused', () => {
  it.each(doubles)('with %s', (_name, given, message) => {
    expect(given).toThrow(ConfigurationError)
    expect(given).toThrow(message)
  })

  it.each([
    ['no tool', [], 'callTool: the tool is not a tool'],
    ['no input', [paying()], 'callTool: the input is missing'],
    ['an input that is a text', [paying(), '{}'], 'callTool: the input is a text'],
    ['a number for what a runtime gives', [paying(), {}, 5], 'callTool: what it was given is 5'],
    ['a signal', [paying(), {}, { signal: 1 }], 'Did you mean cancelled$?'],
    ['an attempt that is not a number', [paying(), {}, { attempt: NaN }], 'attempt is NaN'],
  ])('a call of a tool, with %s', async (_name, given, message) => {
    const called = (callTool as (...args: readonly unknown[]) => Promise<unknown>)(...given)
    await expect(called).rejects.toThrow(ConfigurationError)
    await expect(called).rejects.toThrow(message)
  })

  it('a copy without events, and one without a ledger', async () => {
    const copied = testing.copyPrefix as (...args: readonly unknown[]) => Promise<void>
    await expect(copied(5, memoryLedger())).rejects.toThrow('copyPrefix: events is 5; expected a list')
    await expect(copied([{}], memoryLedger())).rejects.toThrow('events[0] is an object; expected an event')
    await expect(copied([], 'runs.db')).rejects.toThrow('copyPrefix: the ledger is a text')
  })

  it('a wait, without its clock or promise', async () => {
    await expect(waitUntilSettled({} as never, Promise.resolve())).rejects.toThrow(
      'waitUntilSettled: the clock',
    )
    await expect(waitUntilSettled(manualClock(), 5 as never)).rejects.toThrow('the promise is 5')
  })
})
