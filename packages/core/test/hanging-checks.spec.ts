// Code of the application that judges something of a run, and never answers: a schema, a tool's check, a guardrail.
import * as z from 'zod'
import { describe, expect, it } from 'vitest'
import {
  agentTool,
  defineAgent,
  defineGuardrail,
  joinText,
  type AgentOptions,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { answerInTime, late, createStoppableClock } from '../src/values/answer-in-time.ts'
import { checkedRun, ofType, stage } from './stage.ts'

const never = (): Promise<never> => new Promise(() => {})
const hanging = z.object({ n: z.number() }).refine(never)
const child = defineAgent({ name: 'expert', instructions: 'Help.', model: scriptedModel([{ text: 'x' }]) })
const callOf = (name: string) => ({ toolCalls: [{ name, input: { n: 1 } }] })
const guardrailOn = (on: 'input' | 'output' | 'tool_input' | 'tool_output') => [
  defineGuardrail({ name: 'slow', on, timeoutMs: 3_600_000, check: never }),
]
const look = testTool({ name: 'look' })

/** Each place where a run waits for such code, and the event after which it does. */
const places: readonly [where: string, after: RuntimeEvent['type'], options: Partial<AgentOptions>][] = [
  [
    'the schema of an agent that works as a tool',
    'assistant_message_finished',
    { tools: [agentTool(child, { name: 'look', description: 'Ask.', input: hanging })] },
  ],
  [
    'the check of a tool',
    'assistant_message_finished',
    { tools: [testTool({ name: 'look', check: never })] },
  ],
  ['a guardrail on input', 'input_received', { tools: [look], guardrails: guardrailOn('input') }],
  [
    'a guardrail on calls',
    'assistant_message_finished',
    { tools: [look], guardrails: guardrailOn('tool_input') },
  ],
  ['a guardrail on results', 'tool_result', { tools: [look], guardrails: guardrailOn('tool_output') }],
]

describe('a run that waits for code which never answers', () => {
  it.each(places)('ends with a cancel, and leaves no timer: %s', async (_where, after, options) => {
    const set = stage({ steps: [callOf('look'), { text: 'Done.' }], ...options })
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (type === after) void run.cancel('Enough.')
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    checkedRun(await set.eventsOf(run))
    expect(set.clock.pending).toBe(0)
  })

  it.each(places)(
    'ends with the time of the run, and leaves no timer: %s',
    async (_where, _after, options) => {
      const limits = { maxDurationMs: 4_000 }
      const set = stage({ steps: [callOf('look'), { text: 'Done.' }], limits, ...options })
      const { reason, runId } = await set.play()
      expect(reason).toBe('time_limit')
      const events = checkedRun(await set.eventsOf(runId))
      expect(events.at(-1)!.at - events[0]!.at).toBeLessThanOrEqual(4_000)
      expect(set.clock.pending).toBe(0)
    },
  )
})

describe('the check of a call that never ends', () => {
  it('has a minute, and the call counts as one whose check failed', async () => {
    const tools = [agentTool(child, { name: 'look', description: 'Ask.', input: hanging })]
    const set = stage({ steps: [callOf('look'), { text: 'Then without.' }], tools })
    const { runId, text } = await set.play()
    expect(text).toBe('Then without.')
    const events = checkedRun(await set.eventsOf(runId))
    const [result] = ofType(events, 'tool_result')
    expect(result?.outcome).toBe('denied')
    expect(joinText(result!.content)).toBe(
      'The check of this call failed, so it was not run: it did not end within 60000 ms',
    )
    expect(result!.at - events[0]!.at).toBe(60_000)
    expect(set.clock.pending).toBe(0)
  })
})

describe('the schema of an answer that never judges it', () => {
  it('has a minute for each answer, which then does not fit', async () => {
    const steps = [{ text: '{"n":1}' }, { text: '{"n":2}' }]
    const set = stage({ steps, output: hanging, maxOutputRepairs: 1 } as never)
    const { runId, reason } = await set.play()
    expect(reason).toBe('output_invalid')
    const events = checkedRun(await set.eventsOf(runId))
    expect(ofType(events, 'output_checked').map(({ at }) => at - events[0]!.at)).toEqual([60_000, 120_000])
    expect(events.at(-1)).toMatchObject({ detail: 'the check of the schema did not end within 60000 ms' })
    expect(set.clock.pending).toBe(0)
  })

  it('ends with a cancel, and leaves no timer', async () => {
    const set = stage({ steps: [{ text: '{"n":1}' }], output: hanging } as never)
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (type === 'assistant_message_finished') void run.cancel('Enough.')
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'cancelled' })
    expect(set.clock.pending).toBe(0)
  })
})

describe('an answer that is waited for', () => {
  it('sets no timer where it is there at once, and leaves none', async () => {
    const clock = manualClock()
    const uses = (): number => clock.uses
    expect(await answerInTime(() => 7, clock)).toBe(7)
    expect(uses()).toBe(0)
    expect(await answerInTime(async () => 7, clock)).toBe(7)
    await expect(answerInTime(() => Promise.reject(new Error('no')), clock)).rejects.toThrow('no')
    expect(clock.pending).toBe(0)
  })

  it('is late after its time, or a minute, and not before', async () => {
    for (const [timeoutMs, ms] of [
      [undefined, 60_000],
      [50, 50],
    ] as const) {
      const clock = manualClock()
      let answer: unknown = 'waits'
      void answerInTime(never, clock, timeoutMs).then((given) => (answer = given))
      clock.advance(ms - 1)
      await new Promise((resolve) => setImmediate(resolve))
      expect(answer).toBe('waits')
      clock.advance(1)
      await new Promise((resolve) => setImmediate(resolve))
      expect(answer).toBe(late)
    }
  })
})

describe('a clock that can be stopped', () => {
  it('shows the time and calls back, until then', () => {
    const clock = manualClock(5_000)
    const own = createStoppableClock(clock)
    const calls: string[] = []
    own.clock.schedule(10, () => calls.push('first'))
    const cancel = own.clock.schedule(20, () => calls.push('cancelled'))
    own.clock.schedule(30, () => calls.push('stopped'))
    expect(own.clock.now()).toBe(5_000)
    clock.advance(10)
    cancel()
    expect(clock.pending).toBe(1)
    own.stop()
    expect(clock.pending).toBe(0)
    own.clock.schedule(10, () => calls.push('later'))()
    expect(clock.pending).toBe(0)
    clock.advance(100)
    expect(calls).toEqual(['first'])
  })
})
