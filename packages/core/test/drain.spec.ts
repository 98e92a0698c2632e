import { describe, expect, it } from 'vitest'
import { ConfigurationError, LedgerConflictError, memoryLedger, type Ledger } from '@tallystick/core'
import { seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, typesOf, type Stage } from './stage.ts'

/** A run that waits for a person. */
function asking(ledger?: Ledger): Stage {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
  return stage({ steps, tools: [pay], ...(ledger && { ledger }) })
}

describe('a runtime that has been drained', () => {
  it('starts nothing: no run, no resume, and no command of a handle takes a run up again', async () => {
    const set = asking()
    const run = set.start()
    const rest = await set.waitUntilSettled(run.result)
    expect(await set.waitUntilSettled(set.runtime.drain())).toEqual([])
    expect(() => set.start()).toThrow(ConfigurationError)
    expect(() => set.runtime.resume(run.id)).toThrow(ConfigurationError)
    const before = await set.ledger.head(run.id)
    const acknowledgement = await set.waitUntilSettled(
      run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' }),
    )
    expect(acknowledgement).toMatchObject({ accepted: false, code: 'drained' })
    expect(await set.ledger.head(run.id)).toEqual(before)
    expect(await set.ledger.inbox(run.id)).toEqual([])
    // Another process hears of it, and continues.
    const other = stage({ ledger: set.ledger, clock: set.clock, model: set.model, tools: set.agent.tools })
    const handle = other.runtime.resume(run.id)
    await other.waitUntilSettled(handle.result)
    await other.waitUntilSettled(handle.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    expect(await other.waitUntilSettled(handle.result)).toMatchObject({ status: 'done', text: 'Paid.' })
  })

  it('leaves no caller waiting for the answer to a command', async () => {
    const slow = testTool({ name: 'slow', run: () => new Promise(() => {}) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'slow', input: {} }] }], tools: [slow] })
    const run = set.start()
    const started = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => {
        if (type === 'tool_started') resolve()
      })
    })
    await set.waitUntilSettled(started)
    const steered = run.steer('Hurry.')
    const drained = set.runtime.drain(1_000)
    const during = run.steer('Hurry more.')
    expect(await set.waitUntilSettled(drained)).toMatchObject([{ status: 'interrupted' }])
    const late = run.steer('Hurry most.')
    expect(await set.waitUntilSettled(Promise.all([steered, during, late]))).toMatchObject([
      { accepted: true },
      { accepted: false, code: 'drained' },
      { accepted: false, code: 'drained' },
    ])
    const inputs = ofType(checkedRun(await set.eventsOf(run)), 'input_received')
    expect(inputs.map(({ delivery }) => delivery)).toEqual(['start', 'steer'])
  })

  it.each([
    ['when it is over', [1_000], 1_000],
    ['at once where there is none', [0], 0],
    ['when the first one is over, though a later drain gives more', [1_000, 5_000], 1_000],
    ['when the shorter one is over, where a later drain gives less', [1_000, 200], 200],
  ])('stops what is in flight after its grace time, %s', async (_name, graceTimes, waitedMs) => {
    const slow = testTool({ name: 'slow', run: () => new Promise(() => {}) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'slow', input: {} }] }], tools: [slow] })
    const run = set.start()
    const started = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'tool_started' && resolve())
    })
    await set.waitUntilSettled(started)
    // The run waits for its tool, and for nothing else.
    for (let turn = 0; turn < 100; turn++) await Promise.resolve()
    const begunAt = set.clock.now()
    const drains = graceTimes.map((graceMs) => set.runtime.drain(graceMs))
    expect(await set.waitUntilSettled(drains[0]!)).toMatchObject([{ runId: run.id, status: 'interrupted' }])
    expect(set.clock.now() - begunAt).toBe(waitedMs)
    await set.waitUntilSettled(Promise.all(drains))
    expect(set.clock.pending).toBe(0)
  })

  it('begins no check of the calls that a model asks for at the last moment', async () => {
    let checks = 0
    const look = testTool({
      name: 'look',
      check: () => {
        checks++
        return { kind: 'run' }
      },
    })
    const gate = Promise.withResolvers<void>()
    const steps = [
      { text: 'Hm.', toolCalls: [{ name: 'look', input: {} }], until: gate.promise },
      { text: 'Blue.' },
    ]
    const set = stage({ steps, tools: [look] })
    const run = set.start()
    run.events$.subscribe(({ type }) => {
      if (type === 'assistant_started') void set.runtime.drain(1_000)
      if (type === 'assistant_started') gate.resolve()
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ status: 'interrupted', text: 'Hm.' })
    expect([checks, look.runs.length]).toEqual([0, 0])
    const other = stage({ ledger: set.ledger, clock: set.clock, steps: steps.slice(1), tools: [look] })
    expect(await other.waitUntilSettled(other.runtime.resume(run.id).result)).toMatchObject({ text: 'Blue.' })
    expect([checks, look.runs.length]).toEqual([1, 1])
  })

  it('begins no drive session for a command that came while the run stopped, where it is drained in the next moment', async () => {
    const kept = memoryLedger()
    let decided: Promise<unknown> | undefined
    let drained: Promise<unknown> | undefined
    const set = asking({
      ...kept,
      async head(runId) {
        // The writer asks whether it wrote the last event, and then stops: it has read its inbox before.
        const head = await kept.head(runId)
        const [asked] = ofType(await set.eventsOf(runId), 'approval_requested')
        if (asked) decided ??= run.approve(asked.toolCallId ?? '', { by: 'ada' })
        return head
      },
      async release(...released) {
        drained ??= set.runtime.drain(60_000)
        return await kept.release?.(...released)
      },
    })
    const run = set.start()
    const result = await set.waitUntilSettled(run.result)
    expect(result).toMatchObject({ status: 'suspended' })
    expect(await set.waitUntilSettled(decided ?? Promise.resolve())).toMatchObject({ code: 'drained' })
    expect(await set.waitUntilSettled(drained ?? Promise.resolve())).toMatchObject([{ status: 'suspended' }])
    expect(set.model.requests).toHaveLength(1)
  })

  it('gives up a run whose place in its session another process took in that moment, as it does any other', async () => {
    const sessionId = 'chat'
    const one = stage({ steps: [{ text: 'One.' }] })
    let drained: Promise<unknown> | undefined
    const append: Ledger['append'] = async (...given) => {
      if (drained === undefined) {
        drained = two.runtime.drain(0)
        await one.runtime.run(one.agent, 'First.', { sessionId }).result
      }
      return await one.ledger.append(...given)
    }
    const two = stage({
      ...{ ledger: { ...one.ledger, append }, clock: one.clock, random: seededRandom(2) },
      ...{ tools: [testTool({ name: 'look' })] },
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Two.' }],
    })
    const run = two.runtime.run(two.agent, 'Second.', { sessionId, whenBusy: 'wait' })
    expect(await two.waitUntilSettled(run.result)).toMatchObject({ status: 'interrupted' })
    expect(await two.waitUntilSettled(drained ?? Promise.resolve())).toMatchObject([
      { status: 'interrupted' },
    ])
    expect(two.model.requests.length).toBeLessThan(2)
  })

  it('waits for every run, also when the writer of one fails', async () => {
    const ledger = memoryLedger()
    const relieved = new Set<string>()
    const shared: Ledger = {
      ...ledger,
      async append(runId, ...rest) {
        if (relieved.has(runId)) throw new LedgerConflictError('epoch', 'Somebody else drives this run.')
        return await ledger.append(runId, ...rest)
      },
    }
    const slow = testTool({
      name: 'slow',
      run: () =>
        new Promise((resolve) => {
          set.clock.schedule(500, () => resolve('slow, but done'))
        }),
    })
    const set: Stage = stage({
      steps: Array.from({ length: 3 }, () => ({ toolCalls: [{ name: 'slow', input: {} }] })),
      ...{ tools: [slow], ledger: shared },
    })
    const runs = [set.start(), set.start(), set.start()]
    const started = runs.map(
      (run) =>
        new Promise<void>((resolve) => {
          run.events$.subscribe({
            next: ({ type }) => {
              if (type === 'tool_started') resolve()
            },
            error: () => {},
          })
        }),
    )
    await set.waitUntilSettled(Promise.all(started))
    relieved.add(runs[1]!.id)
    const results = await set.waitUntilSettled(set.runtime.drain(1_000))
    expect(results.map(({ runId }) => runId)).toEqual([runs[0]!.id, runs[2]!.id])
    await expect(set.waitUntilSettled(runs[1]!.result)).rejects.toThrow(LedgerConflictError)
    for (const run of [runs[0]!, runs[2]!]) {
      const types = typesOf(await set.eventsOf(run))
      expect(types.at(-1)).toBe('tool_result')
    }
  })
})
