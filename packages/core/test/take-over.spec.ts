import { NEVER, Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  LedgerConflictError,
  memoryLedger,
  RunNotFoundError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  checkLaws,
  manualClock,
  sampleRunId,
  testTool,
  type ScriptedStep,
  type TestTool,
} from '@tallystick/testkit'
import { ofType, recorded, stage, typesOf, type Stage } from './stage.ts'

const payStep = { toolCalls: [{ name: 'pay', input: {} }] }

function payTool(): TestTool {
  return testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
}

/** Two processes over one ledger, each with an agent of its own, of the same name. */
function twoProcesses(options: {
  readonly steps: readonly ScriptedStep[]
  readonly tools: () => readonly TestTool[]
  readonly view?: (ledger: Ledger) => Ledger
}): { a: Stage; b: Stage; ledger: Ledger } {
  const { steps, tools, view = (ledger) => ledger } = options
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const a = stage({ steps, tools: tools(), clock, ledger: view(ledger) })
  const b = stage({ steps, tools: tools(), clock, ledger })
  return { a, b, ledger }
}

describe('resume', () => {
  it('stops at an event that a newer release wrote, takes nothing over, and loses nothing', async () => {
    const {
      start,
      waitUntilSettled: settle,
      ledger,
      eventsOf,
    } = stage({ steps: [payStep], tools: [payTool()] })
    const run = start()
    await settle(run.result)
    const events = await eventsOf(run)
    const dreamt = {
      ...events.at(-1)!,
      seq: events.length + 1,
      type: 'tool_dreamt',
    } as unknown as RuntimeEvent
    const { epoch } = (await ledger.head(run.id))!
    await ledger.append(run.id, { expectedSeq: events.length, epoch }, [dreamt], { durability: 'barrier' })
    const other = createRuntime({ ledger, agents: [stage({ tools: [payTool()] }).agent] })
    await expect(settle(other.resume(run.id).result)).rejects.toMatchObject({ code: 'unknown_event' })
    expect(await ledger.head(run.id)).toEqual({ seq: events.length + 1, epoch })
  })

  it('only reads a run that is done, and raises no epoch', async () => {
    const { play, runtime, ledger, waitUntilSettled: settle, eventsOf } = stage()
    const { runId } = await play()
    const before = [await ledger.head(runId), await eventsOf(runId)]
    const run = runtime.resume(runId)
    expect(await settle(run.result)).toMatchObject({ status: 'done', reason: 'answered', text: 'Done.' })
    expect([await ledger.head(runId), await eventsOf(runId)]).toEqual(before)
    const events: RuntimeEvent[] = []
    for await (const event of run) events.push(event)
    expect(events).toEqual(before[1])
  })

  it('rejects for a run that is in no ledger, and for a text that names none', async () => {
    const { runtime, waitUntilSettled: settle } = stage()
    const missing = runtime.resume(sampleRunId(7))
    await expect(settle(missing.result)).rejects.toThrow(RunNotFoundError)
    await expect(settle(missing.result)).rejects.toThrow(sampleRunId(7))
    expect(() => runtime.resume('run-7')).toThrow(RunNotFoundError)
  })

  it('rejects for an agent that it does not know, and leaves the run with the process that drives it', async () => {
    const { a, ledger } = twoProcesses({
      steps: [payStep, { text: 'Paid.' }],
      tools: () => [payTool()],
    })
    const run = a.start()
    const rest = await a.waitUntilSettled(run.result)
    const stranger = createRuntime({ ledger, host: { clock: a.clock } })
    const refused = a.waitUntilSettled(stranger.resume(run.id).result)
    await expect(refused).rejects.toThrow(ConfigurationError)
    await expect(refused).rejects.toThrow('belongs to the agent agent, which this runtime does not know')
    expect((await ledger.head(run.id))?.epoch).toBe(1)
    await a.waitUntilSettled(run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    expect(await a.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Paid.' })
  })

  it('joins the driver that is at it already', async () => {
    const { start, runtime, waitUntilSettled: settle, ledger, model } = stage({ steps: [{ text: 'Done.' }] })
    const run = start()
    const joined = runtime.resume(run.id)
    expect(await settle(joined.result)).toEqual(await settle(run.result))
    expect(model.requests).toHaveLength(1)
    expect((await ledger.head(run.id))?.epoch).toBe(1)
  })
})

describe('two processes that drive one run', () => {
  it('take over from each other: the first stops, and starts nothing more', async () => {
    const slow = (): TestTool[] => [testTool({ name: 'look', run: () => new Promise(() => {}) })]
    const { a, b, ledger } = twoProcesses({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      tools: slow,
    })
    const lookA = a.agent.tools[0] as TestTool
    const first = a.start()
    await untilStarted(lookA)
    const second = b.runtime.resume(first.id, { takeOver: true })
    await untilStarted(b.agent.tools[0] as TestTool)
    // The first finds out when it next has something to say.
    const failed = a.waitUntilSettled(first.cancel())
    await expect(failed).rejects.toThrow(LedgerConflictError)
    await expect(a.waitUntilSettled(first.result)).rejects.toThrow(LedgerConflictError)
    expect(a.model.requests).toHaveLength(1)
    expect(lookA.runs).toHaveLength(1)
    // What the first was asked is in the inbox: the second decides about it.
    expect(await b.waitUntilSettled(second.result)).toMatchObject({ reason: 'cancelled' })
    const events = await recorded(ledger, first.id)
    expect(checkLaws(events)).toEqual([])
    expect(ofType(events, 'tool_started').map(({ attempt, epoch }) => [attempt, epoch])).toEqual([
      [1, 1],
      [2, 2],
    ])
  })

  it('given a tool that says nothing, when the run is taken over, then the tool is stopped at once', async () => {
    const [begun, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const deaf = new Observable<never>(() => {
      begun.resolve()
      return () => stopped.resolve()
    })
    const { a, b } = twoProcesses({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      tools: () => [{ ...testTool({ name: 'look' }), run: () => deaf }],
    })
    const first = a.start()
    await begun.promise
    const second = b.runtime.resume(first.id, { takeOver: true })
    // No clock is moved: neither an append nor a renewal of the lease tells the first.
    await stopped.promise
    await expect(first.result).rejects.toThrow('has taken run')
    await b.waitUntilSettled(second.cancel())
    expect(await b.waitUntilSettled(second.result)).toMatchObject({ reason: 'cancelled' })
  })

  it('given a ledger without hints, when another process has taken over a run and a command for it, then its tool is stopped at once', async () => {
    const [begun, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const deaf = new Observable<never>(() => {
      begun.resolve()
      return () => stopped.resolve()
    })
    const processes = twoProcesses({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      tools: () => [{ ...testTool({ name: 'look' }), run: () => deaf }],
      view: (ledger) => ({
        ...ledger,
        changes: () => NEVER,
        inbox: async (runId) => {
          const isAsked = (await ledger.inbox(runId)).length > 0
          if (isAsked) processes.b.runtime.resume(runId, { takeOver: true })
          while ((await ledger.inbox(runId)).length > 0) await Promise.resolve()
          return []
        },
      }),
    })
    const { a, b } = processes
    const first = a.start()
    await begun.promise
    const steered = first.steer('Hurry.')
    await expect(steered).rejects.toThrow('was taken out of its inbox by another process')
    await stopped.promise
    await expect(first.result).rejects.toThrow(LedgerConflictError)
    const second = b.runtime.resume(first.id)
    await b.waitUntilSettled(second.cancel())
    expect(await b.waitUntilSettled(second.result)).toMatchObject({ reason: 'cancelled' })
  })

  it('that take it over in the same moment part with a conflict, which says that nothing is damaged', async () => {
    const look = testTool({ name: 'look', run: () => new Promise(() => {}) })
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }]
    const first = stage({ steps, tools: [look] })
    const run = first.start()
    await untilStarted(look)
    await first.waitUntilSettled(first.runtime.drain(0))
    const second = stage({
      steps: [{ text: 'Seen.' }],
      ledger: first.ledger,
      clock: first.clock,
      tools: [look],
    })
    const overtaken: Ledger = {
      ...first.ledger,
      async acquire(runId) {
        const head = await first.ledger.acquire(runId)
        // Another process acquires the run and writes it before this one has read it.
        await second.waitUntilSettled(second.runtime.resume(run.id).cancel('enough'))
        return head
      },
    }
    const third = stage({ ledger: overtaken, clock: first.clock, tools: [look] })
    const failure = await third.waitUntilSettled(
      third.runtime.resume(run.id).result.catch((error: unknown) => error),
    )
    expect(failure).toBeInstanceOf(LedgerConflictError)
    expect(failure).toMatchObject({
      kind: 'epoch',
      message: expect.stringContaining('has taken run') as unknown,
    })
  })

  it('can take the run back by another resume', async () => {
    const { a, b, ledger } = twoProcesses({
      steps: [payStep, { text: 'Paid.' }],
      tools: () => [payTool()],
    })
    const first = a.start()
    await a.waitUntilSettled(first.result)
    const second = b.runtime.resume(first.id)
    await b.waitUntilSettled(second.result)
    const third = a.runtime.resume(first.id)
    const rest = await a.waitUntilSettled(third.result)
    expect((await ledger.head(first.id))?.epoch).toBe(3)
    await a.waitUntilSettled(third.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    expect(await a.waitUntilSettled(third.result)).toMatchObject({ status: 'done', reason: 'answered' })
  })

  it('a handle whose writer was relieved answers with that, and does not take the run back', async () => {
    const slow = (): TestTool[] => [testTool({ name: 'look', run: () => new Promise(() => {}) })]
    const { a, b, ledger } = twoProcesses({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      tools: slow,
    })
    const first = a.start()
    await untilStarted(a.agent.tools[0] as TestTool)
    b.runtime.resume(first.id, { takeOver: true })
    await untilStarted(b.agent.tools[0] as TestTool)
    await expect(a.waitUntilSettled(first.cancel())).rejects.toThrow(LedgerConflictError)
    const head = await ledger.head(first.id)
    await expect(a.waitUntilSettled(first.cancel())).rejects.toThrow(LedgerConflictError)
    expect((await ledger.head(first.id))?.epoch).toBe(head?.epoch)
  })

  it('shows a subscriber of one what the other has done in between, in order, once', async () => {
    const { a, b, ledger } = twoProcesses({
      // Each process has a model of its own, which plays its steps from the first.
      steps: [payStep, { text: 'Paid.' }],
      tools: () => [payTool()],
    })
    const run = a.start()
    const seen: number[] = []
    run.events$.subscribe(({ seq }) => seen.push(seq))
    const approveNext = async (process: Stage): Promise<void> => {
      const handle = process.runtime.resume(run.id)
      const { pendingApprovals } = await process.waitUntilSettled(handle.result)
      await process.waitUntilSettled(handle.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }))
      await process.waitUntilSettled(handle.result)
    }
    await a.waitUntilSettled(run.result)
    await approveNext(b)
    await approveNext(a)
    const events = await recorded(ledger, run.id)
    expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    expect(seen).toEqual(events.map(({ seq }) => seq))
  })

  it('does not wait for ever for a decision that the other has taken', async () => {
    let meddle: (() => Promise<void>) | undefined
    const view = (ledger: Ledger): Ledger => ({
      ...ledger,
      async put(runId: RunId, entry) {
        const fresh = await ledger.put(runId, entry)
        await meddle?.()
        return fresh
      },
      async acquire(runId: RunId) {
        if ((await ledger.head(runId))!.epoch > 20) throw new Error('It takes the run over again and again.')
        return await ledger.acquire(runId)
      },
    })
    const { a, b, ledger } = twoProcesses({
      ...{ steps: [payStep, payStep, { text: 'Paid.' }], tools: () => [payTool()], view },
    })
    const run = a.start()
    const { pendingApprovals } = await a.waitUntilSettled(run.result)
    meddle = async () => {
      meddle = undefined
      await b.waitUntilSettled(b.runtime.resume(run.id).result)
    }
    const acknowledgement = a.waitUntilSettled(run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    await expect(acknowledgement).rejects.toThrow(LedgerConflictError)
    await expect(acknowledgement).rejects.toThrow('was taken out of its inbox by another process')
    expect(await a.waitUntilSettled(run.result)).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay' }],
    })
    expect((await ledger.head(run.id))?.epoch).toBe(3)
    expect(
      typesOf(await recorded(ledger, run.id)).filter((type) => type === 'approval_decided'),
    ).toHaveLength(1)
  })
})

describe('a run that starts under the name of another', () => {
  it('is a conflict of the ledger, and no run', async () => {
    const ledger = memoryLedger()
    const clock = manualClock()
    const started = (): Stage => stage({ ledger, clock, random: () => 0 })
    const first = started().start()
    // The same clock and the same randomness make the same id: the ledger is the one that notices.
    const second = started()
    const twin = second.start('Something else.')
    expect(twin.id).toBe(first.id)
    await expect(second.waitUntilSettled(twin.result)).rejects.toThrow(LedgerConflictError)
  })
})

async function untilStarted(tool: TestTool): Promise<void> {
  for (let turn = 0; turn < 1_000 && tool.runs.length === 0; turn++) await Promise.resolve()
  expect(tool.runs).toHaveLength(1)
}
