import { describe, expect, it } from 'vitest'
import {
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  type RunId,
} from '@tallystick/core'
import { checkLaws, manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { toEventReceipt } from '../src/machine/calls.ts'

const wait = testTool({
  name: 'wait',
  run: ({ input }, report) => {
    report.defer(toEventReceipt(input['for'] as string), input['ms'] as number | undefined)
    return ''
  },
})
const calls = (...inputs: readonly object[]) => ({
  toolCalls: inputs.map((input) => ({ name: 'wait', input: input as { [key: string]: string } })),
})

function world(...steps: readonly object[]) {
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Wait.',
    model: scriptedModel([...steps, { text: 'Done.' }] as never),
    tools: [wait],
  })
  const process = () => createRuntime({ ledger, agents: [agent], host: { clock } })
  const settled = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
  const resultsOf = async (runId: RunId) =>
    (await Array.fromAsync(ledger.read(runId))).flatMap((event) =>
      event.type === 'tool_result' ? [[event.outcome, (event.content[0] as { text: string }).text]] : [],
    )
  return { clock, ledger, agent, process, runtime: process(), settled, resultsOf }
}

describe('an event', () => {
  it('wakes all runs that wait for it, with its payload', async () => {
    const { agent, runtime, settled, resultsOf, ledger } = world(
      calls({ for: 'paid' }),
      calls({ for: 'paid' }),
      calls({ for: 'sent' }),
    )
    const [first, second, other] = await Promise.all(
      ['a', 'b', 'c'].map(async (input) => {
        const run = runtime.run(agent, input)
        expect(await settled(run.result)).toMatchObject({ status: 'suspended' })
        return run
      }),
    )
    const woken = await settled(runtime.signal('paid', { usd: 5 }, { key: 'k1', by: 'bank' }))
    expect(new Set(woken)).toEqual(new Set([first!.id, second!.id]))
    for (const run of [first!, second!]) {
      expect(await settled(run.result)).toMatchObject({ status: 'done' })
      expect(await resultsOf(run.id)).toEqual([['success', '{"usd":5}']])
      expect(checkLaws(await Array.fromAsync(ledger.read(run.id)))).toEqual([])
    }
    expect(await settled(other!.result)).toMatchObject({ status: 'suspended' })
    expect(await runtime.signal('nobody', 1)).toEqual([])
  })

  it('counts once under its key, however often it is delivered', async () => {
    const { agent, runtime, settled, resultsOf } = world(calls({ for: 'paid' }), calls({ for: 'paid' }))
    const run = runtime.run(agent, 'Go.')
    await settled(run.result)
    await settled(Promise.all([1, 2, 3].map(() => runtime.signal('paid', 'one', { key: 'k1' }))))
    // The run waits for the next event of the name: the first one, delivered again, is not that.
    expect(await settled(run.result)).toMatchObject({ status: 'suspended' })
    expect(await settled(runtime.signal('paid', 'one', { key: 'k1' }))).toEqual([])
    expect(await settled(run.result)).toMatchObject({ status: 'suspended' })
    await settled(runtime.signal('paid', 'two', { key: 'k2' }))
    expect(await settled(run.result)).toMatchObject({ status: 'done' })
    expect(await resultsOf(run.id)).toEqual([
      ['success', 'one'],
      ['success', 'two'],
    ])
  })

  it('delivered again, settles no call of a run that has begun since, and one that waited all the time', async () => {
    const wait = calls({ for: 'paid' })
    const { agent, runtime, clock, settled, resultsOf } = world(wait, wait, { text: 'Done.' }, wait)
    const begin = async () => {
      const run = runtime.run(agent, 'Go.')
      expect(await settled(run.result)).toMatchObject({ status: 'suspended' })
      clock.advance(1_000)
      return run
    }
    const [first, waiting] = [await begin(), await begin()]
    // A process that died after the first of its two calls.
    const mayWake = (runId: RunId): boolean => runId === first.id
    expect(await settled(runtime.signal('paid', 'one', { key: 'k1', mayWake }))).toEqual([first.id])
    await settled(first.result)
    clock.advance(1_000)
    const later = await begin()
    expect(await settled(runtime.signal('paid', 'one', { key: 'k1' }))).toEqual([waiting.id])
    expect(await settled(waiting.result)).toMatchObject({ status: 'done' })
    expect(await resultsOf(waiting.id)).toEqual([['success', 'one']])
    expect(await settled(later.result)).toMatchObject({ status: 'suspended' })
    expect(await settled(runtime.signal('paid', 'two', { key: 'k2' }))).toEqual([later.id])
  })

  it('settles two calls of one run that wait for it together', async () => {
    const { agent, runtime, settled, resultsOf } = world(calls({ for: 'paid' }, { for: 'paid', at: 'b' }))
    const run = runtime.run(agent, 'Go.')
    await settled(run.result)
    await settled(runtime.signal('paid', 'both', { key: 'k1' }))
    expect(await settled(run.result)).toMatchObject({ status: 'done' })
    expect(await resultsOf(run.id)).toEqual([
      ['success', 'both'],
      ['success', 'both'],
    ])
  })

  it('that comes before the wait is not kept for it, and the wait ends in its time', async () => {
    const { agent, runtime, process, clock, settled, resultsOf } = world(calls({ for: 'paid', ms: 60_000 }))
    await runtime.signal('paid', 'early', { key: 'k1' })
    const run = runtime.run(agent, 'Go.')
    expect(await settled(run.result)).toMatchObject({ status: 'suspended', wakeAt: clock.now() + 60_000 })
    clock.advance(60_000)
    await settled(process().drive(run.id))
    expect(await settled(runtime.signal('paid', 'late'))).toEqual([])
    expect(await resultsOf(run.id)).toEqual([
      ['timed_out', expect.stringContaining('The event paid did not come in its time.')],
    ])
  })

  it('ends the wait of a process that has died, by whichever process is there', async () => {
    const { agent, runtime, process, settled, resultsOf } = world(calls({ for: 'paid' }))
    const run = runtime.run(agent, 'Go.')
    await settled(run.result)
    await runtime.drain(0)
    const other = process()
    expect(await settled(other.signal('paid', 'yes', { drive: false }))).toEqual([run.id])
    expect(await resultsOf(run.id)).toEqual([])
    expect(await settled(other.drive(run.id))).toMatchObject({ status: 'done' })
    expect(await resultsOf(run.id)).toEqual([['success', 'yes']])
  })

  it('reaches the call of a child run', async () => {
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    const child = defineAgent({
      name: 'child',
      description: 'Waits.',
      instructions: 'Wait.',
      model: scriptedModel([calls({ for: 'paid' }), { text: 'Paid.' }] as never),
      tools: [wait],
    })
    const agent = defineAgent({
      name: 'parent',
      instructions: 'Ask.',
      model: scriptedModel([
        { toolCalls: [{ name: 'child', input: { task: 'Wait.' } }] },
        { text: 'All paid.' },
      ]),
      tools: [agentTool(child)],
    })
    const runtime = createRuntime({ ledger, agents: [agent, child], host: { clock } })
    const run = runtime.run(agent, 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'suspended' })
    expect(await waitUntilSettled(clock, runtime.signal('paid', 1, { key: 'k1' }))).toEqual([run.id])
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'done', text: 'All paid.' })
  })

  it.each([
    ['', 1, {}],
    ['a\nb', 1, {}],
    ['paid', () => 1, {}],
    ['paid', 1, { keys: 'x' }],
  ])('is refused where it could not be one: %j', async (name, payload, options) => {
    const { runtime } = world()
    await expect(runtime.signal(name, payload as never, options as never)).rejects.toThrow(ConfigurationError)
  })
})
