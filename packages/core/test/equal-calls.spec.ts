import { describe, expect, it } from 'vitest'
import { testTool, type TestTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type Stage } from './stage.ts'

const call = (name: string, day = 'today') => ({ name, input: { day } })

function asking(tool: TestTool, calls: readonly ReturnType<typeof call>[], limits: object): Stage {
  return stage({ steps: [{ toolCalls: [...calls] }, { text: 'Done.' }], tools: [tool], limits })
}

async function outcomes(set: Stage): Promise<readonly string[]> {
  const run = set.start()
  await set.waitUntilSettled(run.result)
  const results = ofType(checkedRun(await set.eventsOf(run)), 'tool_result')
  const order = ofType(await set.eventsOf(run), 'tool_results_injected')[0]!.toolCallIds
  return order.map((id) => results.find(({ toolCallId }) => toolCallId === id)!.outcome)
}

describe('equal calls in one reply', () => {
  it('run as often as a repeat is allowed, and the rest is served', async () => {
    const look = testTool({ name: 'look', run: () => 'rain' })
    const calls = Array.from({ length: 4 }, () => call('look'))
    expect(await outcomes(asking(look, calls, { maxRepeats: 1 }))).toEqual([
      ...['success', 'repeated', 'repeated', 'repeated'],
    ])
    expect(look.runs).toHaveLength(1)
    const twice = testTool({ name: 'look', run: () => 'rain' })
    await outcomes(asking(twice, calls, { maxRepeats: 2 }))
    expect(twice.runs).toHaveLength(2)
  })

  it.each([
    ['writes', { effect: 'write' as const }],
    ['calls of a tool that is meant to be asked again', { repeats: 'allowed' as const }],
  ])('all run where they are %s', async (_what, options) => {
    const pay = testTool({ name: 'pay', ...options, run: () => 'done' })
    const calls = Array.from({ length: 5 }, () => call('pay'))
    expect(await outcomes(asking(pay, calls, { maxRepeats: 1 }))).toEqual(calls.map(() => 'success'))
    expect(pay.runs).toHaveLength(5)
  })

  it('run again where the answer changes: that is progress', async () => {
    let answers = 0
    const look = testTool({ name: 'look', run: () => `answer ${++answers}` })
    const calls = Array.from({ length: 3 }, () => call('look'))
    expect(await outcomes(asking(look, calls, { maxRepeats: 2 }))).toEqual(['success', 'success', 'success'])
  })

  it('leave calls of other input alone, which run beside them', async () => {
    const release = Promise.withResolvers<string>()
    const look = testTool({ name: 'look', run: () => release.promise })
    const set = asking(look, [call('look'), call('look', 'tomorrow'), call('look')], { maxRepeats: 1 })
    const run = set.start()
    set.clock.schedule(10, () => release.resolve('rain'))
    await set.waitUntilSettled(run.result)
    const types = (await set.eventsOf(run)).map(({ type }) => type)
    const starts = types.filter((type) => type === 'tool_started')
    expect(starts).toHaveLength(2)
    expect(types.lastIndexOf('tool_started')).toBeLessThan(types.indexOf('tool_result'))
  })

  it('that write ask a person each, since each is meant', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })
    const set = asking(pay, [call('pay'), call('pay')], { maxRepeats: 1 })
    const rest = await set.waitUntilSettled(set.start().result)
    expect(rest.pendingApprovals).toHaveLength(2)
  })

  it('take nothing of the limit on calls where they are served', async () => {
    const look = testTool({ name: 'look', run: () => 'rain' })
    const calls = [call('look'), call('look'), call('look', 'tomorrow')]
    const limits = { maxRepeats: 1, maxToolCalls: 2 }
    expect(await outcomes(asking(look, calls, limits))).toEqual(['success', 'repeated', 'success'])
  })
})
