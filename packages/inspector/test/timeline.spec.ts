import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunId,
  type Runtime,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import {
  manualClock,
  type ManualClock,
  scriptedModel,
  type ScriptedStep,
  testTool,
  type TestTool,
  waitUntilSettled,
} from '@tallystick/testkit'
import { type Lane, type Timeline, TimelineBuilder } from '../src/page/worker/timeline.ts'

interface Stage {
  readonly clock: ManualClock
  readonly ledger: Ledger
  readonly runtime: Runtime
  readonly settle: <T>(promise: Promise<T>) => Promise<T>
  readonly start: () => ReturnType<Runtime['run']>
}

/** A process on a clock that only the test moves. */
function stage(
  steps: readonly ScriptedStep[],
  tools: readonly Tool[] = [],
  clock: ManualClock = manualClock(),
  ledger: Ledger = memoryLedger({ clock }),
): Stage {
  const agent = defineAgent({
    ...{ name: 'buyer', instructions: 'Buy.', model: scriptedModel(steps), tools: [...tools] },
    approval: ({ name }) => (name === 'refund' ? 'ask' : 'run'),
  })
  const host = { clock, random: () => 0, report: () => undefined }
  const runtime = createRuntime({ ledger, agents: [agent], host })
  return {
    ...{ clock, ledger, runtime },
    settle: (promise) => waitUntilSettled(clock, promise),
    start: () => runtime.run(agent, 'Go.'),
  }
}

/** A tool whose attempts take as long as `ms` says, and fail as often as it says. */
function slowTool(name: string, clock: ManualClock, ms: number, failures = 0): TestTool {
  let runs = 0
  return testTool({
    name,
    retry: { maxAttempts: 3, baseMs: 4_000, capMs: 4_000, maxRetryAfterMs: 10_000 },
    run: () =>
      new Promise((resolve, reject) => {
        clock.schedule(ms, () => (runs++ < failures ? reject(new Error('down')) : resolve('done')))
      }),
  })
}

async function readEvents(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  return await Array.fromAsync(ledger.read(runId))
}

function build(events: readonly RuntimeEvent[]): Timeline {
  const builder = new TimelineBuilder()
  for (const event of events) builder.add(event)
  return builder.build()
}

/** Spans and waits as short texts: what, and how long in seconds. */
function tell(things: Lane['spans'] | Timeline['waits']): readonly string[] {
  return things.map(({ kind, from, to, ...rest }) => {
    const length = to === undefined ? 'open' : `${(to - from) / 1_000}s`
    return [kind, length, 'failed' in rest ? rest.failed : ''].filter(Boolean).join(' ')
  })
}

const callRefund: ScriptedStep = { toolCalls: [{ name: 'refund', input: { order: 'A-7' } }] }

describe('the timeline of a run', () => {
  it('has a lane for the model and one for each call, with the parts of the call', async () => {
    const clock = manualClock()
    const both = { toolCalls: ['look', 'find'].map((name) => ({ name, input: {} })) }
    const tools = [slowTool('look', clock, 2_000), slowTool('find', clock, 3_000)]
    const { settle, start, ledger } = stage([both, { text: 'Done.' }], tools, clock)
    const { runId } = await settle(start().result)
    const timeline = build(await readEvents(ledger, runId))
    expect(timeline.lanes.map(({ name, outcome }) => [name, outcome])).toEqual([
      ['scripted-1', undefined],
      ['look', 'success'],
      ['find', 'success'],
    ])
    expect(tell(timeline.lanes[1]!.spans)).toEqual(['requested 0s', 'checked 0s', 'executed 2s'])
    expect(tell(timeline.lanes[2]!.spans)).toEqual(['requested 0s', 'checked 0s', 'executed 3s'])
    expect(timeline.waits).toEqual([])
    expect(timeline).toMatchObject({ isEnded: true, to: timeline.from + 3_000 })
  })

  it('says of each span by which events it begins and ends', async () => {
    const clock = manualClock()
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
    const { settle, start, ledger } = stage(steps, [slowTool('look', clock, 2_000)], clock)
    const { runId } = await settle(start().result)
    const events = await readEvents(ledger, runId)
    const executed = build(events).lanes[1]!.spans.at(-1)!
    expect(events[executed.seq - 1]).toMatchObject({ type: 'tool_started', at: executed.from })
    expect(events[executed.endSeq! - 1]).toMatchObject({ type: 'tool_result', at: executed.to })
  })

  it('tells attempts that failed, and that the run waits for time between them', async () => {
    const clock = manualClock()
    const steps = [
      { fail: 'overloaded', retryAfterMs: 5_000 },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
    ] as const
    const { settle, start, ledger } = stage(steps, [slowTool('look', clock, 1_000, 1)], clock)
    const { runId } = await settle(start().result)
    const timeline = build(await readEvents(ledger, runId))
    const [model, look] = timeline.lanes as [Lane, Lane]
    expect(model.attempts).toBe(2)
    expect(model.spans.map(({ attempt, failed }) => [attempt, failed])).toEqual([
      [1, 'overloaded'],
      [2, undefined],
      [1, undefined],
    ])
    expect(look.attempts).toBe(2)
    expect(tell(look.spans)).toEqual([
      ...['requested 0s', 'checked 0s', 'executed 1s failed'],
      ...['retry 4s', 'executed 1s'],
    ])
    expect(tell(timeline.waits)).toEqual(['time 5s', 'time 4s'])
  })

  it('waits for people while an approval is asked for, also when another process goes on', async () => {
    const refund = testTool({ name: 'refund', effect: 'write', run: () => 'refunded' })
    const first = stage([callRefund], [refund])
    const { runId, pendingApprovals } = await first.settle(first.start().result)
    const waiting = build(await readEvents(first.ledger, runId))
    expect(tell(waiting.waits)).toEqual(['people open'])
    first.clock.advance(3_600_000)
    const second = stage([{ text: 'Done.' }], [refund], first.clock, first.ledger)
    const run = second.runtime.resume(runId)
    await second.settle(run.approve(pendingApprovals[0]!.toolCallId, { by: 'ann' }))
    await second.settle(run.result)
    const timeline = build(await readEvents(first.ledger, runId))
    expect(tell(timeline.waits)).toEqual(['people 3600s'])
    expect(tell(timeline.lanes[1]!.spans)).toEqual([
      ...['requested 0s', 'checked 0s', 'approval 3600s', 'checked 0s', 'executed 0s'],
    ])
    expect(timeline.marks.map(({ kind, text }) => [kind, text])).toContainEqual(['take_over', 'command'])
  })

  it('waits for nobody between the last event of a process that died and its take-over', async () => {
    const hang = testTool({ name: 'refund', effect: 'write', run: () => new Promise<string>(() => {}) })
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    // A process that is gone renews no lease.
    const dying: Ledger = { ...ledger, renew: () => Promise.resolve([]) }
    const first = stage([callRefund], [hang], clock, dying)
    const run = first.start()
    const asked = await first.settle(run.result)
    const resumed = first.runtime.resume(run.id)
    const dead = new Promise<void>((resolve) => {
      resumed.events$.subscribe(({ type }) => type === 'tool_started' && resolve())
    })
    await first.settle(resumed.approve(asked.pendingApprovals[0]!.toolCallId, { by: 'ann' }))
    await first.settle(dead)
    clock.advance(60_000)
    const second = stage([{ text: 'Done.' }], [hang], clock, ledger)
    await second.settle(second.runtime.resume(run.id, { takeOver: true }).result)
    const timeline = build(await readEvents(ledger, run.id))
    expect(tell(timeline.waits)).toContain('nobody 60s')
    expect(tell(timeline.lanes[1]!.spans)).toContain('executed 0s interrupted')
    expect(tell(timeline.lanes[1]!.spans)).toContain('nobody 60s')
  })

  it('never goes back in time, and takes no time that is none', async () => {
    const { settle, start, ledger } = stage([{ text: 'Done.' }])
    const { runId } = await settle(start().result)
    const events = await readEvents(ledger, runId)
    const lying = events.map((event, index) => ({ ...event, at: index % 2 ? event.at - 9_000 : event.at }))
    const timeline = build([...lying.slice(0, -1), { ...lying.at(-1)!, at: Number.NaN }])
    for (const { spans } of timeline.lanes) {
      for (const { from, to } of spans) expect(to).toBeGreaterThanOrEqual(from)
    }
    expect(timeline.to).toBe(timeline.from)
  })
})
