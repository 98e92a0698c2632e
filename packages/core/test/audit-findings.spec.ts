import { beforeAll, describe, expect, it } from 'vitest'
import { LawBrokenError, type Limits, type RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { type EventType } from '@tallystick/core/vocabulary'
import { checkLaws, testTool } from '@tallystick/testkit'
import { recorded, stage } from './stage.ts'

/** A sound run: a read, a write that a person approves, and a write that is in doubt after a crash. */
async function soundRun(): Promise<readonly RuntimeEvent[]> {
  const tools = [
    testTool({ name: 'look' }),
    testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) }),
    testTool({ name: 'send', effect: 'write', run: () => new Promise(() => {}) }),
  ]
  const {
    start,
    waitUntilSettled: settle,
    ledger,
    runtime,
  } = stage({
    steps: [
      {
        text: 'Both.',
        toolCalls: [
          { name: 'look', input: { at: 1 } },
          { name: 'pay', input: { usd: 3 } },
        ],
      },
      { toolCalls: [{ name: 'send', input: {} }] },
      { text: 'Done.' },
    ],
    tools,
    limits: { maxToolCalls: 3 },
  })
  const run = start()
  const { pendingApprovals } = await settle(run.result)
  void run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' })
  run.events$.subscribe((event) => {
    if (event.type === 'tool_started' && event.name === 'send') void runtime.drain(1)
  })
  await settle(run.result)
  const next = stage({ ledger, tools, steps: [{ text: 'Done.' }] })
  await settle(next.runtime.resume(run.id).result)
  return await recorded(ledger, run.id)
}

type Change = (event: RuntimeEvent) => object

/** The run with the last event of a type changed. */
function forge(events: readonly RuntimeEvent[], type: EventType, change: Change): readonly RuntimeEvent[] {
  const index = events.findLastIndex((event) => event.type === type)
  return events.with(index, { ...events[index]!, ...change(events[index]!) })
}

function brokenLaw(events: readonly RuntimeEvent[]): number | undefined {
  try {
    auditAll(events)
    return undefined
  } catch (error) {
    if (error instanceof LawBrokenError) return error.law
    throw error
  }
}

describe('the audit', () => {
  let events: readonly RuntimeEvent[]
  beforeAll(async () => {
    events = await soundRun()
  })

  it('finds nothing in a sound run', () => {
    expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    expect(brokenLaw(events)).toBeUndefined()
  })

  const forgeries: readonly (readonly [what: string, law: number, type: EventType, Change])[] = [
    ['another idempotency key', 10, 'tool_started', () => ({ idempotencyKey: 'mine' })],
    ['an effect that the tool did not declare', 10, 'tool_started', () => ({ effect: 'read' })],
    ['an approval of other arguments', 13, 'approval_requested', () => ({ inputDigest: 'f'.repeat(64) })],
    ['a start with another input', 13, 'tool_started', () => ({ inputDigest: 'f'.repeat(64) })],
    ['more usage than there was', 6, 'run_finished', () => ({ usage: { inputTokens: 9 } })],
    ['time that falls', 4, 'run_finished', ({ at }) => ({ at: at - 1 })],
    [
      'a digest that is not of the input',
      13,
      'tool_requests_collected',
      (event) => ({
        calls: 'calls' in event ? event.calls.map((call) => ({ ...call, inputDigest: '0' })) : [],
      }),
    ],
    [
      'another input in the request than in the message',
      12,
      'tool_request_ready',
      () => ({ input: { usd: 1_000_000 } }),
    ],
  ]
  for (const [what, law, type, change] of forgeries) {
    it(`finds ${what} (law ${law})`, () => expect(brokenLaw(forge(events, type, change))).toBe(law))
  }

  it.each<Limits>([{ maxToolCalls: 1 }, { maxToolCallsPerTurn: 1 }, { maxCallsByTool: { send: 0 } }])(
    'finds a start past %j, and so does the judge (law 9)',
    (tight) => {
      const first = forge(events, 'run_started', (event) => ({
        limits: { ...('limits' in event ? event.limits : {}), ...tight },
      }))
      const [limit = ''] = Object.keys(tight)
      expect(() => auditAll(first)).toThrow(`and ${limit} is used up`)
      expect(brokenLaw(first)).toBe(9)
      expect(checkLaws(first)[0]).toMatchObject({ law: 9, what: expect.stringContaining(limit) })
      expect(checkLaws(events)).toEqual([])
    },
  )

  it('finds that a write in doubt is started again, though its tool does not allow it (law 10)', () => {
    const started = events.findLast(({ type }) => type === 'tool_started')!
    const resumed = events.findLastIndex(({ type }) => type === 'run_resumed')
    const { seq, epoch, at } = events[resumed]!
    const again = { ...started, seq: seq + 1, epoch, at, attempt: 2 } as RuntimeEvent
    expect(brokenLaw([...events.slice(0, resumed + 1), again])).toBe(10)
  })
})

describe('what is on record', () => {
  it('cannot be changed by those who see it', async () => {
    const seen: unknown[] = []
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      reported,
    } = stage({
      steps: [{ text: 'Look.', toolCalls: [{ name: 'look', input: { at: 1 } }] }, { text: 'Done.' }],
      tools: [testTool({ name: 'look' })],
      approval: ({ input }) => {
        try {
          ;(input as Record<string, unknown>)['at'] = 2
        } catch (error) {
          seen.push(error)
        }
        return 'run'
      },
    })
    const run = start()
    run.events$.subscribe((event) => {
      if (event.type === 'assistant_message_finished')
        (event.parts as unknown[]).push({ type: 'text', text: 'x' })
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(reported).toHaveLength(1)
    expect(seen).toHaveLength(1)
    expect(brokenLaw(await eventsOf(run))).toBeUndefined()
  })

  it('leaves what the caller gave the caller’s own', async () => {
    const parts = [{ type: 'text' as const, text: 'Go.' }]
    const { runtime, agent, waitUntilSettled: settle } = stage()
    await settle(runtime.run(agent, parts).result)
    parts[0]!.text = 'Mine.'
    expect(parts[0]!.text).toBe('Mine.')
  })
})

describe('things that cannot be put in words', () => {
  const unspeakable: unknown = Object.create(null)

  it('thrown by a policy, a check or a tool become results', async () => {
    const tools = [
      testTool({ name: 'check', check: () => Promise.reject(unspeakable) }),
      {
        ...testTool({ name: 'run' }),
        run: () => {
          throw unspeakable
        },
      },
    ]
    const toolCalls = tools.map(({ name }) => ({ name, input: {} }))
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({ steps: [{ toolCalls }, { text: 'Done.' }], tools })
    const run = start()
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    const outcomes = (await eventsOf(run)).flatMap((event) =>
      event.type === 'tool_result' ? [event.outcome] : [],
    )
    expect(outcomes).toEqual(['denied', 'failed'])
  })

  it('thrown by a model adapter become a failed call', async () => {
    const { model } = stage()
    const throwing = {
      ...model,
      stream: () => {
        throw unspeakable
      },
    }
    const { start, waitUntilSettled: settle } = stage({ model: throwing })
    expect(await settle(start().result)).toMatchObject({ reason: 'model_failed' })
  })
})

describe('limits', () => {
  it('of turns leave the last turn its retries', async () => {
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: [{ fail: 'overloaded' }, { text: 'Done.' }],
      limits: { maxTurns: 1 },
    })
    expect(await settle(start().result)).toMatchObject({ reason: 'answered', text: 'Done.', turns: 1 })
    expect(model.requests.map(({ toolChoice }) => toolChoice.type)).toEqual(['auto', 'auto'])
  })

  it('of time hold while calls are checked', async () => {
    const { start, waitUntilSettled: settle } = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Out of time.' }],
      tools: [testTool({ name: 'look' })],
      approval: () => new Promise(() => {}),
      limits: { maxDurationMs: 1_000 },
    })
    expect(await settle(start().result)).toMatchObject({ reason: 'time_limit', text: 'Out of time.' })
  })

  it('are raised, never lowered', async () => {
    const { start, waitUntilSettled: settle } = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [testTool({ name: 'look' })],
      limits: { maxTurns: 1, onLimit: 'ask' },
    })
    const run = start()
    await settle(run.result)
    expect(await settle(run.raiseLimit('maxTurns', 1, { by: 'ada' }))).toMatchObject({
      accepted: false,
      code: 'not_raised',
    })
    expect(await settle(run.raiseLimit('maxTurns', 2, { by: 'ada' }))).toEqual({ accepted: true })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
  })

  it('of a tool’s time hold for asking what became of a call', async () => {
    const tools = [
      {
        ...testTool({
          name: 'send',
          effect: 'write',
          recovery: 'reconcile',
          timeoutMs: 5_000,
          run: () => new Promise(() => {}),
        }),
        reconcile: () => new Promise<never>(() => {}),
      },
    ]
    const first = stage({ steps: [{ toolCalls: [{ name: 'send', input: {} }] }], tools })
    const run = first.start()
    run.events$.subscribe((event) => {
      if (event.type === 'tool_started') void first.runtime.drain(1)
    })
    await first.waitUntilSettled(run.result)
    const next = stage({ ledger: first.ledger, clock: first.clock, tools, steps: [{ text: 'Done.' }] })
    expect(await next.waitUntilSettled(next.runtime.resume(run.id).result)).toMatchObject({
      reason: 'answered',
    })
    const results = (await next.eventsOf(run)).filter((event) => event.type === 'tool_result')
    expect(results).toMatchObject([{ outcome: 'interrupted' }])
  })
})
