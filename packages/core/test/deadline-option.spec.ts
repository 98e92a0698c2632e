// A run that was given a moment by which it has to end: work and waiting count alike.
import { describe, expect, it } from 'vitest'
import { createRuntime } from '@tallystick/core'
import { parseEvent } from '@tallystick/core/vocabulary'
import { seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage as stageOf, type Stage, type StageOptions } from './stage.ts'

let processes = 0
const stage = (options: StageOptions = {}): Stage =>
  stageOf({ random: seededRandom(++processes), ...options })
const never = testTool({ name: 'work', run: () => new Promise<never>(() => {}) })
const works = { toolCalls: [{ name: 'work', input: {} }] }

describe('a deadline', () => {
  it('ends the work in time for the answer, and is on record', async () => {
    const set = stage({ tools: [never], steps: [works, { text: 'So far.' }] })
    const deadline = set.clock.now() + 10_000
    const run = set.runtime.run(set.agent, 'Go.', { deadline })
    const result = await set.waitUntilSettled(run.result)
    expect(result).toMatchObject({ reason: 'time_limit', text: 'So far.' })
    expect(set.clock.now()).toBeLessThanOrEqual(deadline)
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'run_started')).toMatchObject([{ deadlineAt: deadline }])
    expect(ofType(events, 'limit_reached')).toMatchObject([
      { limit: 'maxDurationMs', max: 10_000, policy: 'finalize' },
    ])
  })

  it.each([253_402_300_800_000, 8.64e15])(
    'given as %s, which means never, is on record as the last date',
    async (at) => {
      const set = stage({
        tools: [testTool({ name: 'work', check: () => ({ kind: 'ask' }) })],
        steps: [works],
      })
      const run = set.runtime.run(set.agent, 'Go.', { deadline: new Date(at) })
      expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'suspended' })
      const events = await set.eventsOf(run)
      const last = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
      expect(ofType(events, 'run_started')).toMatchObject([{ deadlineAt: last }])
      // A reader that checks every field takes them.
      for (const event of events) expect(() => parseEvent(JSON.parse(JSON.stringify(event)))).not.toThrow()
    },
  )

  it('takes a Date, and yields to a shorter limit on work', async () => {
    const set = stage({ tools: [never], steps: [works, { text: 'So far.' }] })
    const options = { deadline: new Date(set.clock.now() + 60_000), limits: { maxDurationMs: 4_000 } }
    const run = set.runtime.run(set.agent, 'Go.', options)
    await set.waitUntilSettled(run.result)
    expect(ofType(await set.eventsOf(run), 'limit_reached')).toMatchObject([{ max: 4_000 }])
  })

  it.each(['finalize', 'stop', 'ask'] as const)(
    'is not moved by what a person takes to decide, and is never asked about (%s)',
    async (onLimit) => {
      const ask = testTool({ name: 'work', check: () => ({ kind: 'ask' }) })
      const steps = [works, { text: 'Too late.' }]
      const set = stage({ tools: [ask], steps, limits: { onLimit } })
      const run = set.runtime.run(set.agent, 'Go.', { deadline: set.clock.now() + 1_000 })
      const rest = await set.waitUntilSettled(run.result)
      expect(rest.status).toBe('suspended')
      set.clock.advance(2_000)
      const { ledger, clock, agent } = set
      const resumed = createRuntime({ ledger, agents: [agent], host: { clock } }).resume(run.id)
      await set.waitUntilSettled(resumed.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
      expect(await set.waitUntilSettled(resumed.result)).toMatchObject({
        status: 'done',
        reason: 'time_limit',
      })
      expect(ask.runs).toEqual([])
      checkedRun(await set.eventsOf(run))
    },
  )

  it.each([
    ['a text', '2030-01-01'],
    ['no moment', new Date(Number.NaN)],
    ['a fraction', 1.5],
    ['before 1970', -1],
  ])('is refused as %s', (_name, deadline) => {
    const set = stage()
    expect(() => set.runtime.run(set.agent, 'Go.', { deadline: deadline as number })).toThrow(
      /deadline .*Date/,
    )
  })
})
