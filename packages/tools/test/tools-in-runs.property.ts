// Whatever tools do in a run, and whenever it is cancelled: the laws hold, nothing starts before its start is on record, and no
// timer and no tool that has heard of no end is left.
import {
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import {
  checkLaws,
  type ManualClock,
  manualClock,
  scriptedModel,
  waitUntilSettled,
} from '@tallystick/testkit'
import {
  audit,
  cache,
  defineTool,
  image,
  rateLimit,
  settledLater,
  ToolError,
  wrapTools,
} from '@tallystick/tools'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'

/** What a tool returns or throws: what it should, and what it should not. */
const values: Readonly<Record<string, () => unknown>> = {
  text: () => 'done',
  empty: () => '',
  huge: () => 'x'.repeat(200_000),
  'half of a character': () => '\ud800',
  object: () => ({ a: 1 }),
  parts: () => ['one', image({ mediaType: 'image/png', data: 'aGVsbG8=' })],
  nothing: () => undefined,
  NaN: () => Number.NaN,
  bigint: () => 10n,
  map: () => new Map([[1, 2]]),
  function: () => () => 1,
  symbol: () => Symbol('s'),
  cycle: () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    return cycle
  },
  getter: () => Object.defineProperty({}, 'a', { enumerable: true, get: () => fail('getter') }),
  proxy: () => new Proxy({}, { ownKeys: () => fail('proxy') }),
  promise: () => {
    const broken = Promise.reject(new Error('no promise'))
    // Where the tool throws or reports it, its rejection is the tool's own to handle.
    broken.catch(() => {})
    return broken
  },
  stream: () => new ReadableStream(),
  later: () => settledLater({ externalId: 'job-1' }),
  'an error': () => new Error('no'),
  'a refusal': () => new ToolError('Ask differently.', { retryable: true }),
}

function fail(what: string): never {
  throw new Error(`the ${what} broke`)
}

interface Behaviour {
  readonly acts: 'returns' | 'throws' | 'hangs' | 'obeys' | 'throws when stopped'
  readonly value: string
  /** Milliseconds before it does so; `0`: at once. */
  readonly afterMs: number
  /** Reports, so many milliseconds apart. */
  readonly reports: number
  readonly apartMs: number
  readonly effect: 'read' | 'write'
  readonly options: object
}

const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  acts: fc.constantFrom('returns', 'returns', 'throws', 'hangs', 'obeys', 'throws when stopped'),
  value: fc.constantFrom(...Object.keys(values)),
  afterMs: fc.constantFrom(0, 0, 1, 400, 3_000),
  reports: fc.constantFrom(0, 0, 2, 20),
  apartMs: fc.constantFrom(0, 150),
  effect: fc.constantFrom('read', 'write'),
  options: fc.record(
    {
      timeoutMs: fc.constantFrom(100, 1_000),
      quietMs: fc.constantFrom(100, 500),
      serial: fc.constant('device'),
      maxConcurrency: fc.constant(1),
      maxResultChars: fc.constant(200),
      retry: fc.constant({ maxAttempts: 3, baseMs: 50, when: () => true }),
      recovery: fc.constantFrom('rerun', 'report'),
      output: fc.constant({ type: 'object', required: ['b'] }),
      toModel: fc.constantFrom(
        () => 'short',
        () => fail('projection'),
      ),
    },
    { requiredKeys: [] },
  ),
})

interface Program {
  readonly tools: readonly Behaviour[]
  readonly turns: readonly (readonly number[])[]
  readonly cancelAfterMs: number | undefined
  readonly isWrapped: boolean
}

const program: fc.Arbitrary<Program> = fc.record({
  tools: fc.array(behaviour, { minLength: 3, maxLength: 3 }),
  turns: fc.array(fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 4 }), {
    minLength: 1,
    maxLength: 3,
  }),
  cancelAfterMs: fc.option(fc.constantFrom(0, 1, 99, 100, 101, 450, 2_000), { nil: undefined }),
  isWrapped: fc.boolean(),
})

/** What is seen of the tools from outside. */
interface Seen {
  /** Calls that ran before their start was on record. */
  readonly early: string[]
  /** Signals of the calls that have not settled. */
  readonly open: Set<AbortSignal>
  readonly starts: Set<string>
  /** Timers that the tools themselves wait for. */
  readonly ownTimers: Set<object>
}

function toolOf(index: number, plan: Behaviour, clock: ManualClock, seen: Seen): Tool {
  const wait = async (ms: number): Promise<void> => {
    if (ms === 0) return
    const timer = {}
    seen.ownTimers.add(timer)
    await new Promise<void>((resolve) => {
      clock.schedule(ms, () => {
        seen.ownTimers.delete(timer)
        resolve()
      })
    })
  }
  const act = async (signal: AbortSignal, progress: (data: never) => void): Promise<unknown> => {
    for (let report = 0; report < plan.reports && !signal.aborted; report++) {
      await wait(plan.apartMs)
      progress(values[plan.value]?.() as never)
    }
    await wait(plan.afterMs)
    if (plan.acts === 'hangs') return await new Promise(() => {})
    if (plan.acts === 'obeys' || plan.acts === 'throws when stopped') await aborted(signal)
    const value = values[plan.value]?.()
    if (plan.acts.startsWith('throws')) throw value
    return value
  }
  return defineTool({
    name: `tool_${index}`,
    description: 'Acts.',
    input: { type: 'object' },
    effect: plan.effect,
    ...plan.options,
    async execute(_input, { signal, progress, toolCallId, attempt }) {
      if (!seen.starts.has(`${toolCallId} ${attempt}`)) seen.early.push(`${toolCallId} ${attempt}`)
      seen.open.add(signal)
      try {
        return await act(signal, progress)
      } finally {
        seen.open.delete(signal)
      }
    },
  })
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve())
  })
}

/** A ledger that notes each start once it is durable. */
function notingStarts(ledger: Ledger, starts: Set<string>): Ledger {
  const append: Ledger['append'] = async (runId, expected, events, options) => {
    const appended = await ledger.append(runId, expected, events, options)
    for (const event of events) {
      if (event.type === 'tool_started') starts.add(`${event.toolCallId} ${event.attempt}`)
    }
    return appended
  }
  return { ...ledger, append }
}

async function play({ tools: plans, turns, cancelAfterMs, isWrapped }: Program) {
  const clock = manualClock()
  const seen: Seen = { early: [], open: new Set(), starts: new Set(), ownTimers: new Set() }
  const made = plans.map((plan, index) => toolOf(index, plan, clock, seen))
  const around = [audit(() => {}), cache({ maxAgeMs: 1_000 }), rateLimit({ maxCalls: 2, perMs: 1_000 })]
  const tools = isWrapped ? wrapTools(made, around) : made
  const model = scriptedModel([
    ...turns.map((calls) => ({ toolCalls: calls.map((index) => ({ name: `tool_${index}`, input: {} })) })),
    { text: 'Done.' },
  ])
  const ledger = notingStarts(memoryLedger(), seen.starts)
  const agent = defineAgent({ name: 'worker', instructions: 'Work.', model, tools })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'Go.')
  // What hangs without a time of its own ends by this one.
  const stops = [cancelAfterMs, 60_000].flatMap((ms) =>
    ms === undefined ? [] : [clock.schedule(ms, () => void run.cancel('enough').catch(() => {}))],
  )
  const result = await waitUntilSettled(clock, run.result)
  if (result.status === 'suspended') await waitUntilSettled(clock, run.cancel('nothing is waited for'))
  for (const stop of stops) stop()
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(run.id)) events.push(event)
  const leftTimers = clock.pending - seen.ownTimers.size
  // What was cancelled may end later than its run, and does end.
  while (clock.advanceToNext()) await new Promise((resolve) => void setImmediate(resolve))
  await new Promise((resolve) => void setImmediate(resolve))
  return { events, seen, leftTimers }
}

it(
  'a run of any tools keeps the laws, and leaves nothing, whenever it is cancelled',
  { timeout: 300_000 },
  async () => {
    const holds = fc.asyncProperty(program, async (planned) => {
      const { events, seen, leftTimers } = await play(planned)
      expect(checkLaws(events)).toEqual([])
      expect(seen.early).toEqual([])
      expect(events.at(-1)?.type).toBe('run_finished')
      expect([...seen.open].filter((signal) => !signal.aborted)).toEqual([])
      expect(leftTimers).toBe(0)
    })
    await fc.assert(holds, { numRuns: tries(300) })
  },
)
