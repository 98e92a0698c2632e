import { describe, expect, it } from 'vitest'
import type { Ledger } from '@tallystick/core'
import { memoryLedger } from '@tallystick/core'
import { manualClock, seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type Stage, type StageOptions } from './stage.ts'

const steps = [
  {
    toolCalls: [
      { name: 'slow', input: {} },
      { name: 'pay', input: {} },
    ],
  },
  { text: 'Done.' },
]

/** Two processes on one ledger, whose run waits for a person to decide about two calls. */
async function twoProcesses(
  ledger: Ledger = memoryLedger(),
  options: StageOptions = {},
  view: Ledger = ledger,
) {
  let end: () => void = () => {}
  const until = new Promise<string>((resolve) => (end = () => resolve('Slowly.')))
  const tools = [
    testTool({ name: 'slow', check: () => ({ kind: 'ask' }), run: () => until }),
    testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) }),
  ]
  const one = stage({ ...options, ledger: view, steps, tools })
  const other = stage({
    ...options,
    ledger,
    steps: [{ text: 'Done.' }],
    tools,
    clock: one.clock,
    random: seededRandom(2),
  })
  const run = one.start()
  const { pendingApprovals } = await one.waitUntilSettled(run.result)
  const [slow, pay] = pendingApprovals.map(({ toolCallId }) => toolCallId)
  const theirs = other.runtime.resume(run.id)
  await one.waitUntilSettled(theirs.result)
  return { one, other, run, theirs, slow: slow!, pay: pay!, end }
}

const started = (set: Stage, id: string): Promise<number> =>
  set.eventsOf(id).then((events) => ofType(events, 'tool_started').length)

describe('a decision from a second process', () => {
  it('is left to the process that drives the run', async () => {
    const set = await twoProcesses(memoryLedger())
    const { one, other, run, theirs, slow, pay, end } = set
    const first = run.approve(slow, { by: 'ada' })
    await one.waitUntilSettled(first)
    while ((await started(one, run.id)) === 0) await Promise.resolve()
    expect(await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))).toEqual({ accepted: true })
    expect(await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
    end()
    expect(await one.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    expect(await one.waitUntilSettled(theirs.result)).toMatchObject({ status: 'done', reason: 'answered' })
    const events = checkedRun(await one.eventsOf(run))
    expect(ofType(events, 'tool_started')).toHaveLength(2)
    expect(ofType(events, 'tool_result').map(({ outcome }) => outcome)).toEqual(['success', 'success'])
    expect(other.reported).toEqual([])
  })

  it('is decided by its sender once the lease of a driver has ended that died elsewhere', async () => {
    const clock = manualClock()
    const ledger = memoryLedger({ clock })
    let isDead = false
    const gone = new Promise<never>(() => {})
    const mortal: Ledger = {
      ...ledger,
      append: async (...given) => (isDead ? await gone : await ledger.append(...given)),
      renew: async (...given) => (isDead ? await gone : await ledger.renew(...given)),
      inbox: async (...given) => (isDead ? await gone : await ledger.inbox(...given)),
    }
    const { one, run, theirs, slow, pay } = await twoProcesses(ledger, { clock }, mortal)
    await one.waitUntilSettled(run.approve(slow, { by: 'ada' }))
    while ((await started(one, run.id)) === 0) await Promise.resolve()
    isDead = true
    const diedAt = clock.now()
    expect(await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))).toEqual({ accepted: true })
    expect(clock.now() - diedAt).toBeGreaterThan(11_000)
    expect(clock.now() - diedAt).toBeLessThanOrEqual(13_000)
    expect(ofType(checkedRun(await one.eventsOf(run)), 'approval_decided')).toHaveLength(2)
  })
})

describe('two equal commands from a second process', () => {
  it.each(['cancel', 'approve', 'raiseLimit'] as const)(
    'are answered each by its own inbox key: one is obeyed, one refused (%s)',
    async (verb) => {
      const { one, other, run, theirs, slow, pay, end } = await twoProcesses(memoryLedger(), {
        limits: { maxTurns: 5 },
      })
      await one.waitUntilSettled(run.approve(slow, { by: 'ada' }))
      while ((await started(one, run.id)) === 0) await Promise.resolve()
      const send = () =>
        verb === 'cancel'
          ? theirs.cancel('enough')
          : verb === 'approve'
            ? theirs.approve(pay, { by: 'bob' })
            : theirs.raiseLimit('maxTurns', 9, { by: 'bob' })
      const acknowledgements = await one.waitUntilSettled(Promise.all([send(), send()]))
      expect(acknowledgements.map(({ accepted }) => accepted)).toEqual([true, false])
      end()
      await one.waitUntilSettled(run.result)
      const type = {
        cancel: 'cancel_requested',
        approve: 'approval_decided',
        raiseLimit: 'limit_raised',
      } as const
      const decided = ofType(checkedRun(await one.eventsOf(run)), type[verb])
      expect(new Set(decided.map(({ inboxKey }) => inboxKey)).size).toBe(decided.length)
      expect(decided.every(({ inboxKey }) => inboxKey !== undefined)).toBe(true)
      expect(other.reported).toEqual([])
    },
  )
})

describe('a handle whose run another process finished', () => {
  it('has the result and the events of that process', async () => {
    const { one, run, theirs, slow, pay, end } = await twoProcesses()
    const seen: string[] = []
    const completed = new Promise<void>((resolve) => {
      run.events$.subscribe({ next: ({ type }) => seen.push(type), complete: resolve })
    })
    end()
    await one.waitUntilSettled(theirs.approve(slow, { by: 'bob' }))
    await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))
    expect(await one.waitUntilSettled(theirs.result)).toMatchObject({ status: 'done' })
    expect(await one.waitUntilSettled(run.result)).toMatchObject({ status: 'done', reason: 'answered' })
    await one.waitUntilSettled(completed)
    expect(seen).toEqual((await one.eventsOf(run)).map(({ type }) => type))
    expect(await run.approve(pay, { by: 'ada' })).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
    expect(await run.cancel('enough')).toMatchObject({ accepted: false, code: 'run_finished' })
  })
})

describe('a decision that another process has made before', () => {
  const refused = (by: string, how: string, toolCallId: string, runId: string) => ({
    accepted: false,
    code: 'not_awaiting_approval',
    message: expect.stringMatching(
      `Tool call ${toolCallId} was ${how} before, by ${by} \\(event \\d+ of run ${runId}\\); a call is decided once`,
    ),
  })

  it('is refused with who decided and how, where this process knows that the run has ended', async () => {
    const { one, run, theirs, slow, pay, end } = await twoProcesses()
    end()
    await one.waitUntilSettled(theirs.deny(slow, { by: 'bob', reason: 'too slow' }))
    await one.waitUntilSettled(theirs.approve(pay, { by: 'cat' }))
    await one.waitUntilSettled(run.result)
    expect(await run.approve(slow, { by: 'ada' })).toMatchObject(refused('bob', 'denied', slow, run.id))
    expect(await run.deny(pay, { by: 'ada', reason: 'no' })).toMatchObject(
      refused('cat', 'approved', pay, run.id),
    )
  })

  it('is refused so where the run had ended by the time it came to the inbox, and where it ended meanwhile', async () => {
    const inner = memoryLedger()
    let isLate = true
    const ended = Promise.withResolvers<void>()
    // The way to the inbox takes longer than the run.
    const put: Ledger['put'] = async (...entry) => {
      if (isLate) await ended.promise
      return await inner.put(...entry)
    }
    const { one, run, theirs, slow, pay, end } = await twoProcesses(inner, {}, { ...inner, put })
    const late = run.approve(slow, { by: 'ada' })
    const meanwhile = run.deny(pay, { by: 'ada', reason: 'no' })
    end()
    await one.waitUntilSettled(theirs.approve(slow, { by: 'bob' }))
    await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))
    await one.waitUntilSettled(theirs.result)
    ended.resolve()
    isLate = false
    expect(await one.waitUntilSettled(Promise.all([late, meanwhile]))).toMatchObject([
      refused('bob', 'approved', slow, run.id),
      refused('bob', 'approved', pay, run.id),
    ])
  })

  it('is refused so in a run that has gone on, and where its writer reads it after the first', async () => {
    const { one, run, theirs, slow, pay, end } = await twoProcesses()
    await one.waitUntilSettled(run.approve(slow, { by: 'ada' }))
    while ((await started(one, run.id)) === 0) await Promise.resolve()
    const both = Promise.all([run.deny(pay, { by: 'ada', reason: 'no' }), theirs.approve(pay, { by: 'bob' })])
    expect((await one.waitUntilSettled(both))[1]).toMatchObject(refused('ada', 'denied', pay, run.id))
    end()
  })

  it('is refused because the run is done where the ledger does not answer, or the decision is not on record', async () => {
    const inner = memoryLedger()
    let isBroken = false
    const find: Ledger['find'] = (query) => {
      if (isBroken) throw new Error('The disk is gone')
      return inner.find(query)
    }
    const { one, run, theirs, slow, pay, end } = await twoProcesses(inner, {}, { ...inner, find })
    end()
    await one.waitUntilSettled(theirs.approve(slow, { by: 'bob' }))
    await one.waitUntilSettled(theirs.approve(pay, { by: 'bob' }))
    await one.waitUntilSettled(run.result)
    const isDone = { accepted: false, code: 'run_finished' }
    expect(await run.approve(pay, { by: 'ada', attempt: 2 })).toMatchObject(isDone)
    isBroken = true
    expect(await run.approve(pay, { by: 'ada' })).toMatchObject(isDone)
  })
})
