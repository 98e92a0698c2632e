import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { testTool, type TestTool, type TestToolOptions } from '@tallystick/testkit'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { checkedRun, ofType, stage } from './stage.ts'

/** Plays one reply that asks for these calls; each takes some time. Returns what is on record. */
async function playing(
  tools: readonly TestTool[],
  names: readonly string[],
  maxConcurrency = 8,
): Promise<readonly RuntimeEvent[]> {
  const toolCalls = names.map((name) => ({ name, input: {} }))
  const set = stage({
    steps: [{ toolCalls }, { text: 'Done.' }],
    tools,
    limits: { maxConcurrency, maxRepeats: 99 },
  })
  const { runId } = await set.play()
  return checkedRun(await set.eventsOf(runId))
}

/** A tool whose calls end as others get their turn. */
const slow = (name: string, more: Partial<TestToolOptions> & Pick<TestTool, 'serial'> = {}): TestTool => {
  const { serial, maxConcurrency, ...options } = more as Partial<TestTool> & Partial<TestToolOptions>
  const run = async (): Promise<string> => {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    return 'done'
  }
  const tool = testTool({ name, run, ...options })
  return { ...tool, ...(serial && { serial }), ...(maxConcurrency && { maxConcurrency }) }
}

/** The most calls of those named that were at work at once, and the order in which they started. */
function work(events: readonly RuntimeEvent[], names: readonly string[]): { most: number; order: number[] } {
  let [now, most] = [0, 0]
  const order: number[] = []
  for (const event of events) {
    if (event.type === 'tool_started' && names.includes(event.name)) {
      most = Math.max(most, ++now)
      order.push(Number(event.toolCallId.split('_').at(-1)))
    }
    if (event.type === 'tool_result' && names.includes(event.name)) now--
  }
  return { most, order }
}

describe('tools that share a serial key', () => {
  it('run one at a time, in the order of the requests, beside others', async () => {
    const tools = [slow('click', { serial: 'browser' }), slow('type', { serial: 'browser' }), slow('look')]
    const events = await playing(tools, ['click', 'look', 'type', 'look', 'click'])
    expect(work(events, ['click', 'type'])).toEqual({ most: 1, order: [1, 3, 5] })
    expect(work(events, ['look']).most).toBe(2)
  })

  it('run one at a time where some of them write', async () => {
    const tools = [slow('read', { serial: 'file' }), slow('write', { serial: 'file', effect: 'write' })]
    const events = await playing(tools, ['read', 'write', 'read', 'write'])
    expect(work(events, ['read', 'write'])).toEqual({ most: 1, order: [1, 2, 3, 4] })
  })

  it('wait for a call that a person decides about', async () => {
    const ask = slow('ask', { serial: 'desk', check: () => ({ kind: 'ask' }) })
    const toolCalls = ['ask', 'look'].map((name) => ({ name, input: {} }))
    const set = stage({
      steps: [{ toolCalls }, { text: 'Done.' }],
      tools: [ask, slow('look', { serial: 'desk' })],
    })
    const run = set.start()
    const { pendingApprovals } = await set.waitUntilSettled(run.result)
    expect(ofType(await set.eventsOf(run), 'tool_started')).toEqual([])
    await set.waitUntilSettled(run.approve(pendingApprovals[0]!, { by: 'ada' }))
    await set.waitUntilSettled(run.result)
    expect(ofType(await set.eventsOf(run), 'tool_started').map(({ name }) => name)).toEqual(['ask', 'look'])
  })

  it('or have a limit of their own run as many at once as that allows, beside others', async () => {
    const limited = slow('look', { ...({ maxConcurrency: 2 } as object) })
    const events = await playing(
      [limited, slow('read')],
      ['look', 'look', 'look', 'read', 'read', 'read', 'look'],
    )
    expect(work(events, ['look'])).toEqual({ most: 2, order: [1, 2, 3, 7] })
    expect(work(events, ['read']).most).toBe(3)
  })

  it('and tools with a limit of their own: never more at once than allowed, every call once, in order', async () => {
    const plan = fc.record({
      serial: fc.constantFrom(undefined, 'a', 'b'),
      maxConcurrency: fc.constantFrom(undefined, 1, 2),
      effect: fc.constantFrom('read', 'read', 'write'),
    })
    await fc.assert(
      fc
        .asyncProperty(
          fc.array(plan, { minLength: 1, maxLength: 4 }),
          fc.array(fc.nat(3), { minLength: 1, maxLength: 9 }),
          fc.integer({ min: 1, max: 4 }),
          async (plans, asked, most) => {
            const tools = plans.map((each, index) => slow(`tool${index}`, each as Partial<TestToolOptions>))
            const names = asked.map((index) => tools[index % tools.length]!.name)
            const events = await playing(tools, names, most)
            expect(ofType(events, 'tool_started')).toHaveLength(names.length)
            expect(ofType(events, 'run_finished')).toMatchObject([{ reason: 'answered' }])
            for (const { name, maxConcurrency = 99 } of tools) {
              expect(work(events, [name]).most).toBeLessThanOrEqual(maxConcurrency)
            }
            for (const key of ['a', 'b']) {
              const sharing = tools.filter(({ serial }) => serial === key).map(({ name }) => name)
              const { most: atOnce, order } = work(events, sharing)
              expect(atOnce).toBeLessThanOrEqual(1)
              expect(order).toEqual(order.toSorted((one, two) => one - two))
            }
          },
        )
        .beforeEach(newTask),
      { numRuns: tries(100) },
    )
  })

  it('are on record: the key with each call, key and limit with the agent', async () => {
    const events = await playing(
      [slow('look', { serial: 'desk', ...({ maxConcurrency: 2 } as object) })],
      ['look'],
    )
    const [collected] = ofType(events, 'tool_requests_collected')
    expect(collected?.calls).toMatchObject([{ serial: 'desk', maxConcurrency: 2 }])
    const [begun] = ofType(events, 'run_started')
    const pinned = { name: 'look', serial: 'desk', maxConcurrency: 2 }
    expect(begun?.definition.policy?.tools).toMatchObject([pinned])
  })

  it('refuses a key that is not text, and a limit under which nothing runs', () => {
    const wrong = (more: object) => () => stage({ tools: [{ ...testTool({ name: 'look' }), ...more }] })
    expect(wrong({ serial: '' })).toThrow(/its serial is an empty text/)
    expect(wrong({ serial: 5 })).toThrow(/its serial is 5/)
    expect(wrong({ maxConcurrency: 0 })).toThrow(
      /its maxConcurrency is 0; expected a whole number of at least 1/,
    )
  })
})
