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
import {
  checkLaws,
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ManualClock,
  type ScriptedStep,
} from '@tallystick/testkit'
import { supervise, type SuperviseOptions } from '@tallystick/server'

/** A process with a runtime and a supervisor on a ledger that others may share. */
function process(
  ledger: Ledger,
  clock: ManualClock,
  agents: readonly Agent[],
  options: Partial<SuperviseOptions> = {},
) {
  const reported: unknown[] = []
  const report = (error: unknown): unknown => reported.push(error)
  const runtime = createRuntime({ ledger, agents, host: { clock, random: () => 0, report } })
  const open = (): ReturnType<typeof supervise> => {
    const supervisor = supervise({ runtime, ledger, clock, report, ...options })
    onTestFinished(() => supervisor.stop())
    return supervisor
  }
  return { runtime, reported, open }
}

const agentOf = (name: string, ...steps: Parameters<typeof scriptedModel>[0]): Agent =>
  defineAgent({ name, instructions: 'Work.', model: scriptedModel(steps) })

async function eventsOf(ledger: Ledger, runId: string) {
  const events = []
  for await (const event of ledger.read(runId as RunId)) events.push(event)
  expect(checkLaws(events)).toEqual([])
  return events
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

describe('a supervisor', () => {
  it('takes up a run whose process is gone, once', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const { runtime, open, reported } = process(ledger, clock, [agentOf('teller', { text: 'Done.' })])
    const supervisor = open()
    expect(await waitUntilSettled(clock, supervisor.look())).toEqual([])
    await waitUntilSettled(clock, runtime.idle())
    expect((await eventsOf(ledger, runId)).at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    expect(await waitUntilSettled(clock, supervisor.look())).toEqual([])
    expect(reported).toEqual([])
  })

  it('leaves a run alone that a process drives', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const agent = agentOf('teller', { text: 'I think', hang: true })
    const one = process(ledger, clock, [agent])
    const run = one.runtime.run(agent, 'Hi.')
    run.result.catch(() => {})
    for await (const event of run) if (event.type === 'assistant_started') break
    const other = process(ledger, clock, [agentOf('teller', { text: 'Done.' })])
    expect(await other.open().look()).toEqual([])
    await waitUntilSettled(clock, one.runtime.drain(0))
  })

  it('ends the wait for a person whose time is over, at its own rhythm', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const agent = (...steps: Parameters<typeof scriptedModel>[0]): Agent =>
      defineAgent({
        name: 'office',
        instructions: 'Pay.',
        model: scriptedModel(steps),
        tools: [pay],
        limits: { maxApprovalMs: 60_000 },
      })
    const first = agent({ toolCalls: [{ name: 'pay', input: {} }] })
    const { runtime } = process(ledger, clock, [first])
    const { runId } = await waitUntilSettled(clock, runtime.run(first, 'Pay.').result)
    const second = agent({ text: 'Not paid.' })
    const other = process(ledger, clock, [second], { everyMs: 5_000 })
    const supervisor = other.open()
    expect(await supervisor.look()).toEqual([])
    while ((await eventsOf(ledger, runId)).at(-1)?.type !== 'run_finished') {
      clock.advance(5_000)
      await supervisor.look()
      await waitUntilSettled(clock, other.runtime.idle())
    }
    const decided = (await eventsOf(ledger, runId)).find(({ type }) => type === 'approval_decided')
    expect(decided).toMatchObject({ approved: false })
    expect(pay.runs).toEqual([])
    expect(other.reported).toEqual([])
  })

  it('folds a run that waits once, and knows to the millisecond when its wait is over', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const call = { toolCalls: [{ name: 'pay', input: {} }] }
    const office = (limits: { maxApprovalMs?: number }, steps: readonly ScriptedStep[]): Agent =>
      defineAgent({
        ...{ name: `office ${JSON.stringify(limits)}`, instructions: 'Pay.', tools: [pay], limits },
        model: scriptedModel(steps),
      })
    const agents = (step: ScriptedStep): [Agent, Agent] => [
      office({ maxApprovalMs: 60_000 }, [step]),
      office({}, [step]),
    ]
    const [hasty, patient] = agents(call)
    const { runtime } = process(ledger, clock, [hasty, patient])
    const { runId } = await waitUntilSettled(clock, runtime.run(hasty, 'Pay.').result)
    const asked = clock.now()
    const endless = await waitUntilSettled(clock, runtime.run(patient, 'Pay.').result)
    const reads: string[] = []
    const read: Ledger['read'] = (id, range) => {
      reads.push(id)
      return ledger.read(id, range)
    }
    const other = process({ ...ledger, read }, clock, agents({ text: 'Not paid.' }), { everyMs: 2_000_000 })
    const supervisor = other.open()
    expect(await supervisor.look()).toEqual([])
    const folded = reads.length
    for (let looks = 0; looks < 3; looks++) expect(await supervisor.look()).toEqual([])
    clock.advance(asked + 59_999 - clock.now())
    expect(await supervisor.look()).toEqual([])
    // A list of runs in memory reads each of them.
    expect(reads).toHaveLength(folded + 4 * 2)
    clock.advance(1)
    expect(await supervisor.look()).toEqual([runId])
    await waitUntilSettled(clock, other.runtime.idle())
    expect((await eventsOf(ledger, runId)).at(-1)?.type).toBe('run_finished')
    expect((await eventsOf(ledger, endless.runId)).at(-1)?.type).toBe('approval_requested')
    clock.advance(1_000_000)
    expect(await supervisor.look()).toEqual([])
  })

  it('reads a command that was left in an inbox', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const agent = (...steps: Parameters<typeof scriptedModel>[0]): Agent =>
      defineAgent({ name: 'office', instructions: 'Pay.', model: scriptedModel(steps), tools: [pay] })
    const first = agent({ toolCalls: [{ name: 'pay', input: {} }] })
    const { runtime } = process(ledger, clock, [first])
    const { runId, pendingApprovals } = await waitUntilSettled(clock, runtime.run(first, 'Pay.').result)
    const command = { type: 'approve', toolCallId: pendingApprovals[0]!.toolCallId, by: 'ada' } as const
    await ledger.put(runId, { key: 'k1', command, at: clock.now() })
    const other = process(ledger, clock, [agent({ text: 'Paid.' })])
    other.open()
    while ((await eventsOf(ledger, runId)).at(-1)?.type !== 'run_finished') {
      await waitUntilSettled(clock, other.runtime.idle())
      await Promise.resolve()
    }
    expect(pay.runs).toHaveLength(1)
  })

  it('resumes the parent of an interrupted run', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const family = (
      ask: Parameters<typeof scriptedModel>[0],
      work: Parameters<typeof scriptedModel>[0],
    ): Agent => {
      const worker = defineAgent({
        name: 'worker',
        description: 'Works.',
        instructions: 'Work.',
        model: scriptedModel(work),
      })
      return defineAgent({
        name: 'boss',
        instructions: 'Ask.',
        model: scriptedModel(ask),
        tools: [agentTool(worker)],
      })
    }
    const asks = { toolCalls: [{ name: 'worker', input: { task: 'Dig.' } }] }
    const first = family([asks], [{ text: 'I dig', hang: true }])
    const one = process(ledger, clock, [first])
    const run = one.runtime.run(first, 'Dig.')
    run.result.catch(() => {})
    while ((await runIds(ledger)).length < 2) await Promise.resolve()
    await waitUntilSettled(clock, one.runtime.drain(0))
    const other = process(ledger, clock, [family([{ text: 'Dug.' }], [{ text: 'A hole.' }])])
    other.open()
    while ((await eventsOf(ledger, run.id)).at(-1)?.type !== 'run_finished') {
      await waitUntilSettled(clock, other.runtime.idle())
      await Promise.resolve()
    }
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
    const other = process(ledger, clock, [family(false)])
    expect(await other.open().look()).toEqual([])
    await waitUntilSettled(clock, other.runtime.idle())
    expect((await eventsOf(ledger, waiting.runId)).at(-1)).toMatchObject({
      type: 'run_finished',
      reason: 'answered',
    })
  })

  it('reports a run that it cannot drive once, and stays there', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const { open, reported, runtime } = process(ledger, clock, [agentOf('other', { text: 'Done.' })])
    const supervisor = open()
    await supervisor.look()
    await waitUntilSettled(clock, runtime.idle())
    for (let looks = 0; looks < 3; looks++) await supervisor.look()
    expect(reported).toMatchObject([
      { code: 'configuration', message: expect.stringContaining(runId) as string },
    ])
  })

  it('waits longer after each failure of a run that fails in the same way at every resume', async () => {
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
    const { open, runtime, reported } = process(ledger, clock, [agent], { everyMs: 3_600_000 })
    const run = runtime.run(agent, 'Hi.')
    await expect(waitUntilSettled(clock, run.result)).rejects.toThrow('There is a fault in this function.')
    const supervisor = open()
    const callsAfter = async (ms: number, everyMs: number): Promise<number> => {
      for (let past = 0; past < ms; past += everyMs) {
        clock.advance(everyMs)
        await supervisor.look()
        await waitUntilSettled(clock, runtime.idle())
      }
      return calls
    }
    expect(await callsAfter(60_000, 5_000)).toBe(5)
    expect(await callsAfter(540_000, 5_000)).toBe(8)
    // Each look is work of the machine: some every twenty minutes show as well that a wait ends, and lasts an hour at most.
    expect(await callsAfter(12 * 3_600_000, 1_200_000)).toBe(21)
    expect(reported).toHaveLength(20)
    expect((await eventsOf(ledger, run.id)).filter(({ type }) => type === 'run_resumed')).toHaveLength(20)
  })

  it('resumes a run that failed as soon as another process has recorded something of it', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const { open, runtime, reported } = process(ledger, clock, [agentOf('other', { text: 'Done.' })])
    const supervisor = open()
    await supervisor.look()
    await waitUntilSettled(clock, runtime.idle())
    const elsewhere = process(ledger, clock, [agentOf('teller', { text: 'I think', hang: true })])
    elsewhere.runtime.resume(runId).result.catch(() => {})
    clock.advance(1)
    await waitUntilSettled(clock, elsewhere.runtime.drain(0))
    await supervisor.look()
    await waitUntilSettled(clock, runtime.idle())
    expect(reported).toHaveLength(2)
  })

  it('survives a ledger that fails', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    const failing = {
      ...ledger,
      runs: () => {
        throw new Error('The disk is gone.')
      },
    }
    const { open, reported } = process(failing, clock, [agentOf('teller', { text: 'Done.' })])
    expect(await open().look()).toEqual([])
    expect(reported).toContainEqual(new Error('The disk is gone.'))
    expect((await eventsOf(ledger, runId)).at(-1)?.type).not.toBe('run_finished')
  })
})

describe('two supervisors', () => {
  it('take a run up together, and only one drives it to its end', async () => {
    const [ledger, clock] = [memoryLedger(), manualClock()]
    const runId = await interruptedRun(ledger, clock)
    clock.advance(60_000)
    const options = { everyMs: 2_000_000 }
    const both = [1, 2].map(() =>
      process(ledger, clock, [agentOf('teller', { text: 'Done.' }, { text: 'Done.' })], options),
    )
    for (const { open } of both) open()
    while ((await eventsOf(ledger, runId)).at(-1)?.type !== 'run_finished') {
      for (const { runtime } of both) await waitUntilSettled(clock, runtime.idle())
      await Promise.resolve()
    }
    const events = await eventsOf(ledger, runId)
    expect(events.filter(({ type }) => type === 'run_finished')).toHaveLength(1)
    expect(both.flatMap(({ reported }) => reported)).toEqual([])
  })
})

async function runIds(ledger: Ledger): Promise<readonly string[]> {
  const ids: string[] = []
  for await (const { runId } of ledger.runs()) ids.push(runId)
  return ids
}
