import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Agent,
  agentTool,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunId,
} from '@tallystick/core'
import { defaultHost } from '@tallystick/core/internal'
import { startWorker } from '@tallystick/engines'
import { pollingEngine, type PollingOptions } from '@tallystick/engines/polling'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ManualClock,
  type ScriptedStep,
} from '@tallystick/testkit'

/** A process with a runtime and a worker on a ledger that others may share. */
function process(
  ledger: Ledger,
  clock: ManualClock,
  agents: readonly Agent[],
  options: Partial<PollingOptions> = {},
) {
  const reported: unknown[] = []
  const report = (error: unknown): void => void reported.push(error)
  const runtime = createRuntime({ ledger, agents, host: { clock, random: () => 0, report } })
  const open = async (): Promise<void> => {
    const engine = pollingEngine({ ledger, clock, report, ...options })
    const worker = await startWorker({ runtime, engine })
    onTestFinished(() => waitUntilSettled(clock, worker.stop(0)))
  }
  return { runtime, reported, open }
}

const agentOf = (name: string, ...steps: readonly ScriptedStep[]): Agent =>
  defineAgent({ name, instructions: 'Work.', model: scriptedModel(steps) })

async function eventsOf(ledger: Ledger, runId: string) {
  const events = await Array.fromAsync(ledger.read(runId as RunId))
  expect(checkLaws(events)).toEqual([])
  return events
}

/** Lets everything happen that needs no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await new Promise<void>((resolve) => void setImmediate(resolve))
}

/** Lets time pass in steps, and everything happen after each of them. */
async function pass(clock: ManualClock, ms: number, stepMs = 1_000): Promise<void> {
  for (let past = 0; past < ms; past += stepMs) {
    clock.advance(stepMs)
    await settle()
  }
}

/** Lets time pass until the run has ended. */
async function ended(ledger: Ledger, clock: ManualClock, runId: string): Promise<void> {
  for (let steps = 0; (await eventsOf(ledger, runId)).at(-1)?.type !== 'run_finished'; steps++) {
    if (steps === 500) throw new Error('The run has not ended.')
    await settle()
    clock.advance(250)
  }
}

/** Drives a run up to a point where its process is gone: it hangs, and its runtime is drained. */
async function interruptedRun(ledger: Ledger, clock: ManualClock): Promise<RunId> {
  const agent = agentOf('teller', { text: 'I think', hang: true })
  const { runtime } = process(ledger, clock, [agent])
  const run = runtime.run(agent, 'Hi.')
  run.result.catch(() => {})
  for await (const event of run) if (event.type === 'assistant_started') break
  await waitUntilSettled(clock, runtime.drain(0))
  return run.id
}

describe('a polling worker', () => {
  it('takes up a run whose process is gone, once', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const { open, reported } = process(ledger, clock, [agentOf('teller', { text: 'Done.' })])
    await open()
    await ended(ledger, clock, runId)
    const { length } = await eventsOf(ledger, runId)
    await pass(clock, 20_000)
    expect(await eventsOf(ledger, runId)).toHaveLength(length)
    expect(reported).toEqual([])
  })

  it('takes up at its start a run whose process has died on this machine, before its lease has ended', async () => {
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    const runId = await interruptedRun(ledger, clock)
    const died = defaultHost.process?.name.replace(/since [^)]+/, 'since another time')
    await ledger.acquire(runId, { holder: `${died} r1`, forMs: 12_000 })
    const begun = clock.now()
    const { open, reported } = process(ledger, clock, [agentOf('teller', { text: 'Done.' })])
    await open()
    await ended(ledger, clock, runId)
    expect(clock.now() - begun).toBeLessThan(2_000)
    expect(reported).toEqual([])
  })

  it('waits for the lease of a process of which it knows nothing', async () => {
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    const runId = await interruptedRun(ledger, clock)
    await ledger.acquire(runId, { holder: 'a process elsewhere', forMs: 12_000 })
    const begun = clock.now()
    const { open, reported } = process(ledger, clock, [agentOf('teller', { text: 'Done.' })])
    await open()
    await ended(ledger, clock, runId)
    expect(clock.now() - begun).toBeGreaterThanOrEqual(12_000)
    expect(reported).toEqual([])
  })

  it('leaves a run alone that a process drives', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const agent = agentOf('teller', { text: 'I think', hang: true })
    const one = process(ledger, clock, [agent])
    const run = one.runtime.run(agent, 'Hi.')
    run.result.catch(() => {})
    for await (const event of run) if (event.type === 'assistant_started') break
    await process(ledger, clock, [agentOf('teller', { text: 'Done.' })]).open()
    await pass(clock, 20_000)
    expect((await eventsOf(ledger, run.id)).filter(({ type }) => type === 'run_resumed')).toEqual([])
    await waitUntilSettled(clock, one.runtime.drain(0))
  })

  it('ends the wait for a person whose time is over', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const agent = (...steps: readonly ScriptedStep[]): Agent =>
      defineAgent({
        ...{ name: 'office', instructions: 'Pay.', model: scriptedModel(steps), tools: [pay] },
        limits: { maxApprovalMs: 60_000 },
      })
    const first = agent({ toolCalls: [{ name: 'pay', input: {} }] })
    const { runtime } = process(ledger, clock, [first])
    const { runId } = await waitUntilSettled(clock, runtime.run(first, 'Pay.').result)
    const asked = clock.now()
    const { open, reported } = process(ledger, clock, [agent({ text: 'Not paid.' })])
    await open()
    await ended(ledger, clock, runId)
    expect(clock.now() - asked).toBeGreaterThanOrEqual(60_000)
    const decided = (await eventsOf(ledger, runId)).find(({ type }) => type === 'approval_decided')
    expect(decided).toMatchObject({ approved: false })
    expect(pay.runs).toEqual([])
    expect(reported).toEqual([])
  })

  it('reads a command that was left in an inbox', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const agent = (...steps: readonly ScriptedStep[]): Agent =>
      defineAgent({ name: 'office', instructions: 'Pay.', model: scriptedModel(steps), tools: [pay] })
    const first = agent({ toolCalls: [{ name: 'pay', input: {} }] })
    const { runtime } = process(ledger, clock, [first])
    const { runId, pendingApprovals } = await waitUntilSettled(clock, runtime.run(first, 'Pay.').result)
    const command = { type: 'approve', toolCallId: pendingApprovals[0]!.toolCallId, by: 'ada' } as const
    await ledger.put(runId, { key: 'k1', command, at: clock.now() })
    await process(ledger, clock, [agent({ text: 'Paid.' })]).open()
    await ended(ledger, clock, runId)
    expect(pay.runs).toHaveLength(1)
  })

  it('resumes the parent of an interrupted run', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const family = (ask: ScriptedStep, work: ScriptedStep): Agent => {
      const worker = defineAgent({
        ...{ name: 'worker', description: 'Works.', instructions: 'Work.', model: scriptedModel([work]) },
      })
      return defineAgent({
        ...{ name: 'boss', instructions: 'Ask.', model: scriptedModel([ask]), tools: [agentTool(worker)] },
      })
    }
    const asks = { toolCalls: [{ name: 'worker', input: { task: 'Dig.' } }] }
    const first = family(asks, { text: 'I dig', hang: true })
    const one = process(ledger, clock, [first])
    const run = one.runtime.run(first, 'Dig.')
    run.result.catch(() => {})
    while ((await Array.fromAsync(ledger.runs())).length < 2) await Promise.resolve()
    await waitUntilSettled(clock, one.runtime.drain(0))
    const other = process(ledger, clock, [family({ text: 'Dug.' }, { text: 'A hole.' })])
    await other.open()
    await ended(ledger, clock, run.id)
    expect(other.reported).toEqual([])
  })

  it('takes up a run whose child run has ended in a process that died before it reported that', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const dig = testTool({ name: 'dig', check: () => ({ kind: 'ask' }), run: () => 'A hole.' })
    const family = (asks: boolean): Agent => {
      const work = [...(asks ? [{ toolCalls: [{ name: 'dig', input: {} }] }] : []), { text: 'Dug.' }]
      const model = scriptedModel(work)
      const worker = defineAgent({
        ...{ name: 'worker', description: 'Works.', instructions: 'Work.', model, tools: [dig] },
      })
      const call = { toolCalls: [{ name: 'worker', input: { task: 'Dig.' } }] }
      return defineAgent({
        ...{ name: 'boss', instructions: 'Ask.', tools: [agentTool(worker)] },
        model: scriptedModel(asks ? [call] : [{ text: 'There is a hole.' }]),
      })
    }
    const first = family(true)
    const one = process(ledger, clock, [first])
    const waiting = await waitUntilSettled(clock, one.runtime.run(first, 'Dig.').result)
    const { runId: childId, toolCallId } = waiting.pendingApprovals[0]!
    const put: Ledger['put'] = (id, entry) =>
      id === waiting.runId ? Promise.reject(new Error('The process died here.')) : ledger.put(id, entry)
    const dying = process({ ...ledger, put }, clock, [family(false)])
    const child = dying.runtime.resume(childId)
    await waitUntilSettled(clock, child.approve(toolCallId, { by: 'ada' }))
    await waitUntilSettled(
      clock,
      child.result.catch(() => undefined),
    )
    await process(ledger, clock, [family(false)]).open()
    await ended(ledger, clock, waiting.runId)
    expect((await eventsOf(ledger, waiting.runId)).at(-1)).toMatchObject({ reason: 'answered' })
  })

  it('waits longer after each failure of a run that fails in the same way at every drive', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    let calls = 0
    const agent = defineAgent({
      name: 'teller',
      instructions: 'Work.',
      model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }]),
      tools: [testTool({ name: 'look' })],
      prepareTurn({ request }) {
        if (request.messages.length === 1) return {}
        calls++
        throw new Error('There is a fault in this function.')
      },
    })
    const { open, runtime, reported } = process(ledger, clock, [agent], { everyMs: 5_000 })
    const run = runtime.run(agent, 'Hi.')
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow('There is a fault in this function.')
    await open()
    await settle()
    await pass(clock, 60_000, 5_000)
    expect(calls).toBe(5)
    await pass(clock, 540_000, 5_000)
    expect(calls).toBe(8)
    // Each look is work of the machine: some every twenty minutes show as well that a wait ends, and lasts an hour at most.
    await pass(clock, 12 * 3_600_000, 1_200_000)
    expect(calls).toBe(21)
    expect(reported).toHaveLength(20)
    expect((await eventsOf(ledger, run.id)).filter(({ type }) => type === 'run_resumed')).toHaveLength(20)
  })

  it('drives a run that failed as soon as another process has recorded something of it', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const { open, reported } = process(ledger, clock, [agentOf('other', { text: 'Done.' })])
    await open()
    await settle()
    expect(reported).toMatchObject([
      { code: 'configuration', message: expect.stringContaining(runId) as string },
    ])
    await pass(clock, 2_000)
    expect(reported).toHaveLength(1)
    const elsewhere = process(ledger, clock, [agentOf('teller', { text: 'I think', hang: true })])
    elsewhere.runtime.resume(runId).result.catch(() => {})
    await settle()
    await waitUntilSettled(clock, elsewhere.runtime.drain(0))
    await pass(clock, 1_000)
    expect(reported).toHaveLength(2)
  })

  it('survives a ledger that fails', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    let isGone = true
    const due: Ledger['due'] = (filter) => {
      if (isGone) throw new Error('The disk is gone.')
      return ledger.due(filter)
    }
    const { open, reported } = process({ ...ledger, due }, clock, [agentOf('teller', { text: 'Done.' })])
    await open()
    await settle()
    expect(reported).toEqual([new Error('The disk is gone.')])
    isGone = false
    await ended(ledger, clock, runId)
  })
})

describe('two polling workers', () => {
  it('take a run up together, and only one drives it to its end', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const both = [1, 2].map(() =>
      process(ledger, clock, [agentOf('teller', { text: 'Done.' }, { text: 'Done.' })]),
    )
    await Promise.all(both.map(({ open }) => open()))
    await ended(ledger, clock, runId)
    const events = await eventsOf(ledger, runId)
    expect(events.filter(({ type }) => type === 'run_finished')).toHaveLength(1)
    expect(both.flatMap(({ reported }) => reported)).toEqual([])
  })
})
