import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  LedgerConflictError,
  memoryLedger,
  joinText,
  type Ledger,
  type Run,
  type RunId,
} from '@tallystick/core'
import { mortalLedger, seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type Stage, type StageOptions } from './stage.ts'

const session = 'chat'

/** A promise that the test resolves. */
function gate(): { readonly until: Promise<void>; readonly open: () => void } {
  let open = (): void => {}
  const until = new Promise<void>((resolve) => (open = resolve))
  return { until, open: () => open() }
}

/** A process whose run is under way, in a model call that ends when `open` is called. */
async function underWay(options: StageOptions = {}) {
  const { until, open } = gate()
  const set = stage({ ...options, steps: [{ text: 'One.', until }, ...(options.steps ?? [])] })
  const first = set.runtime.run(set.agent, 'First.', { sessionId: session })
  await new Promise((resolve) => first.events$.subscribe({ next: resolve, error: () => {} }))
  return { set, first, open }
}

async function takenIn(set: Stage, runId: string): Promise<void> {
  while (ofType(await set.eventsOf(runId), 'input_received').length < 2) await Promise.resolve()
}

/** What users have said in the session, and where it was shown last. */
async function said(set: Stage): Promise<readonly string[]> {
  const history = await set.runtime.session(session).history()
  return (history?.messages ?? []).flatMap((message) =>
    message.role === 'user' ? [joinText(message.parts)] : [],
  )
}

async function runIds(ledger: Ledger): Promise<readonly RunId[]> {
  return (await Array.fromAsync(ledger.runs({ sessionId: session }))).map(({ runId }) => runId)
}

/** A ledger that counts who watches the changes of runs in it. */
function watched(): { readonly ledger: Ledger; readonly watchers: () => number } {
  const ledger = memoryLedger()
  let watchers = 0
  const changes: Ledger['changes'] = (runId) =>
    new Observable((subscriber) => {
      watchers++
      subscriber.add(() => void watchers--)
      subscriber.add(ledger.changes(runId).subscribe(subscriber))
    })
  return { ledger: { ...ledger, changes }, watchers: () => watchers }
}

/** A run of this process that waits for a person, and what happens right before its next append. */
async function waitingHere() {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const { ledger, watchers } = watched()
  let before: (() => Promise<void>) | undefined
  const view: Ledger = {
    ...ledger,
    async append(...given) {
      const happens = before
      before = undefined
      await happens?.()
      return await ledger.append(...given)
    },
  }
  const strike = (happens: () => Promise<void>): Promise<void> =>
    new Promise((resolve) => {
      before = () => happens().finally(resolve)
    })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Two.' }]
  const set = stage({ tools: [pay], steps, ledger: view })
  const first = set.runtime.run(set.agent, 'First.', { sessionId: session })
  const { pendingApprovals } = await set.waitUntilSettled(first.result)
  return { set, first, pendingApprovals, ledger, strike, pay, watchers }
}

describe('input that joins a run', () => {
  it.each(['the same process', 'another process'])(
    'of %s, which ends without showing it, begins the next run of the session',
    async (from) => {
      const { set, first, open } = await underWay({
        limits: { maxTurns: 1, onLimit: 'stop' },
        steps: [{ text: 'Two.' }],
      })
      const other = stage({
        ...{ ledger: set.ledger, clock: set.clock, random: seededRandom(2), steps: [{ text: 'Two.' }] },
      })
      const sender = from === 'the same process' ? set : other
      const joining = sender.runtime.session(session).run(sender.agent, 'Second.', { whenBusy: 'join' })
      await takenIn(set, first.id)
      open()
      const joined = await set.waitUntilSettled(joining)
      expect(joined.id).not.toBe(first.id)
      expect(await set.waitUntilSettled(joined.result)).toMatchObject({ reason: 'answered', text: 'Two.' })
      expect(ofType(await set.eventsOf(first), 'input_settled')).toMatchObject([{ delivered: false }])
      expect(await said(set)).toEqual(['First.', 'Second.'])
      checkedRun(await set.eventsOf(joined))
    },
  )

  it('of a run that waits for a person is answered at once, and begins the next run where that one ends', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const set = stage({
      tools: [pay],
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Two.' }],
    })
    const first = set.runtime.run(set.agent, 'First.', { sessionId: session })
    await set.waitUntilSettled(first.result)
    const joined = await set.waitUntilSettled(
      set.runtime.session(session).run(set.agent, 'Second.', { whenBusy: 'join' }),
    )
    expect(joined.id).toBe(first.id)
    await set.waitUntilSettled(first.cancel())
    expect(await set.waitUntilSettled(first.result)).toMatchObject({ reason: 'cancelled' })
    await set.waitUntilSettled(set.runtime.idle())
    const settled = ofType(await set.eventsOf(first), 'input_settled')
    expect(settled).toMatchObject([{ delivered: false }])
    expect(await runIds(set.ledger)).toHaveLength(2)
    expect(await said(set)).toEqual(['First.', 'Second.'])
  })

  it.each([
    ['its epoch', undefined],
    ['its seq', new LedgerConflictError('seq', 'Another writer has appended.')],
  ])(
    'of a run that waits here and that another process takes over in that moment is taken in by that one, refused by %s',
    async (_, refusal) => {
      const { set, first, pendingApprovals, ledger, strike, pay } = await waitingHere()
      const struck = strike(async () => {
        await ledger.acquire(first.id)
        // A store may look at the seq before it looks at the epoch.
        if (refusal) throw refusal
      })
      const joining = set.runtime.session(session).run(set.agent, 'Second.', { whenBusy: 'join' })
      await struck
      while ((await ledger.inbox(first.id)).length === 0) await Promise.resolve()
      const other = stage({
        ...{ tools: [pay], steps: [{ text: 'Two.' }], ledger, clock: set.clock, random: seededRandom(2) },
      })
      const taken = other.runtime.resume(first.id)
      await set.waitUntilSettled(taken.approve(pendingApprovals[0]!, { by: 'ada' }))
      expect((await set.waitUntilSettled(joining)).id).toBe(first.id)
      await set.waitUntilSettled(taken.result)
      expect(await said(other)).toEqual(['First.', 'Second.'])
    },
  )

  it('of a run that waits, and whose inbox keeps it since its sender died, is answered once the run continues', async () => {
    const { set, first, pendingApprovals, ledger, pay } = await waitingHere()
    const message = { role: 'user', parts: [{ type: 'text', text: 'Second.' }] } as const
    const command = { type: 'steer', message, receipt: 'kept' } as const
    await ledger.put(first.id, { key: 'kept', command, at: set.clock.now() })
    const other = stage({ tools: [pay], ledger, clock: set.clock, random: seededRandom(2) })
    const again = { whenBusy: 'join', inputId: 'kept' } as const
    const joining = other.runtime.session(session).run(other.agent, 'Second.', again)
    let hasAnswer = false
    void joining.catch(() => {}).finally(() => (hasAnswer = true))
    await set.waitUntilSettled(new Promise<void>((resolve) => void set.clock.schedule(5_000, resolve)))
    expect(hasAnswer).toBe(false)
    await set.waitUntilSettled(first.approve(pendingApprovals[0]!, { by: 'ada' }))
    expect((await set.waitUntilSettled(joining)).id).toBe(first.id)
    expect(await set.waitUntilSettled(first.result)).toMatchObject({ reason: 'answered' })
    expect(await said(set)).toEqual(['First.', 'Second.'])
  })

  it('of a run that waits here and cannot be written is refused to its sender', async () => {
    const { set, strike } = await waitingHere()
    void strike(() => Promise.reject(new Error('no space left')))
    const joining = set.runtime.session(session).run(set.agent, 'Second.', { whenBusy: 'join' })
    await expect(set.waitUntilSettled(joining)).rejects.toThrow('no space left')
  })

  it('of an id that a waiting run has taken is not sent again, and begins no run where that one shows it', async () => {
    const { set, first, pendingApprovals, watchers } = await waitingHere()
    const again = { whenBusy: 'join', inputId: 'once' } as const
    for (let time = 1; time <= 2; time++) {
      const joining = set.runtime.session(session).run(set.agent, 'Second.', again)
      expect((await set.waitUntilSettled(joining)).id).toBe(first.id)
    }
    await set.waitUntilSettled(first.approve(pendingApprovals[0]!, { by: 'ada' }))
    expect(await set.waitUntilSettled(first.result)).toMatchObject({ reason: 'answered' })
    await set.waitUntilSettled(set.runtime.idle())
    expect(await said(set)).toEqual(['First.', 'Second.'])
    expect(await runIds(set.ledger)).toEqual([first.id])
    expect(watchers()).toBe(0)
  })

  it('of a run that ends in that moment begins the next run of the session', async () => {
    const { set, first, open } = await underWay()
    const put: Ledger['put'] = async (runId, entry) => {
      open()
      await first.result
      return await set.ledger.put(runId, entry)
    }
    const other = stage({
      ...{ ledger: { ...set.ledger, put }, clock: set.clock, random: seededRandom(2) },
      steps: [{ text: 'Two.' }],
    })
    const joining = other.runtime.session(session).run(other.agent, 'Second.', { whenBusy: 'join' })
    const joined = await other.waitUntilSettled(joining)
    expect(joined.id).not.toBe(first.id)
    expect(await other.waitUntilSettled(joined.result)).toMatchObject({ reason: 'answered', text: 'Two.' })
    expect(await said(other)).toEqual(['First.', 'Second.'])
  })

  it('is watched no longer once its run has shown it, or cannot be written', async () => {
    const { ledger, watchers } = watched()
    const { set, first, open } = await underWay({ ledger, steps: [{ text: 'Both.' }] })
    const joining = set.runtime.session(session).run(set.agent, 'Second.', { whenBusy: 'join' })
    await takenIn(set, first.id)
    open()
    expect((await set.waitUntilSettled(joining)).id).toBe(first.id)
    await set.waitUntilSettled(first.result)
    await set.waitUntilSettled(set.runtime.idle())
    expect(watchers()).toBe(0)
    const waiting = await waitingHere()
    const { runtime, agent } = waiting.set
    await waiting.set.waitUntilSettled(runtime.session(session).run(agent, 'Second.', { whenBusy: 'join' }))
    void waiting.strike(() => Promise.reject(new Error('no space left')))
    const approved = waiting.first.approve(waiting.pendingApprovals[0]!, { by: 'ada' })
    await expect(waiting.set.waitUntilSettled(approved)).rejects.toThrow('no space left')
    expect(waiting.watchers()).toBe(0)
  })

  it('is reported where the next run cannot begin with it: no caller waits for that', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const set = stage({ tools: [pay], steps: [{ toolCalls: [{ name: 'pay', input: {} }] }] })
    const first = set.runtime.run(set.agent, 'First.', { sessionId: session })
    await set.waitUntilSettled(first.result)
    // The model has no price, which the run that is joined does not need.
    const options = { whenBusy: 'join', limits: { maxCostUsd: 1 } } as const
    await set.waitUntilSettled(set.runtime.session(session).run(set.agent, 'Second.', options))
    await set.waitUntilSettled(first.cancel())
    expect(await set.waitUntilSettled(first.result)).toMatchObject({ reason: 'cancelled' })
    await set.waitUntilSettled(set.runtime.idle())
    expect(set.reported.map(String)).toEqual([expect.stringContaining('scripted-1 has no price')])
    expect(await runIds(set.ledger)).toEqual([first.id])
  })

  it('is named to its sender where the process dies in front of it, and a retry sends it no second time', async () => {
    const ledger = memoryLedger()
    const {
      set: dying,
      first,
      open,
    } = await underWay({
      ledger: mortalLedger(ledger, { append: 5, stored: false }),
    })
    first.result.catch(() => {})
    while (ofType(await dying.eventsOf(first.id), 'assistant_text_delta').length < 2) await Promise.resolve()
    const set = stage({
      ...{ ledger, clock: dying.clock, random: seededRandom(2) },
      steps: [{ text: 'Resumed.' }, { text: 'Second.' }],
    })
    const join = (inputId?: string) =>
      set.runtime.session(session).run(set.agent, 'Second.', { whenBusy: 'join', inputId })
    const joining = join()
    const refused = joining.catch((error: unknown) => error)
    while ((await ledger.inbox(first.id)).length === 0) await Promise.resolve()
    open()
    const error = await set.waitUntilSettled(refused)
    expect(error).toBeInstanceOf(LedgerConflictError)
    const { busy, message } = error as LedgerConflictError
    expect(busy).toMatchObject({
      runId: first.id,
      status: 'interrupted',
      inputId: expect.any(String) as string,
    })
    expect(message).toContain(`keeps the input ${busy?.inputId}`)
    const again = await set.waitUntilSettled(join(busy?.inputId).catch((late: unknown) => late))
    expect(again).toMatchObject({ busy: { inputId: busy?.inputId } })
    expect(await ledger.inbox(first.id)).toHaveLength(1)
    const resumed = set.runtime.resume(first.id)
    expect(await set.waitUntilSettled(resumed.result)).toMatchObject({ reason: 'answered' })
    const late = await set.waitUntilSettled(join(busy?.inputId))
    expect(late.id).toBe(first.id)
    expect(await set.waitUntilSettled(late.result)).toMatchObject({ reason: 'answered' })
    expect(await said(set)).toEqual(['First.', 'Second.'])
  })

  it.each(['looks for its past', 'records its first event'])(
    'joins a run that another process begins while its own %s',
    async (when) => {
      const { until, open } = gate()
      const one = stage({ steps: [{ text: 'One.', until }, { text: 'Both.' }] })
      const { promise: begun, resolve: hasBegun } = Promise.withResolvers<Run>()
      let first: Run | undefined
      const begin = async (): Promise<void> => {
        if (first) return
        first = one.runtime.run(one.agent, 'First.', { sessionId: session })
        while ((await runIds(one.ledger)).length === 0) await Promise.resolve()
        hasBegun(first)
      }
      let looks = 0
      const view: Ledger = {
        ...one.ledger,
        runs(filter) {
          const runs = one.ledger.runs(filter)
          return (async function* () {
            if (when === 'looks for its past' && ++looks === 2) await begin()
            yield* looks === 2 ? one.ledger.runs(filter) : runs
          })()
        },
        async append(runId, expected, events, options) {
          if (when === 'records its first event' && runId !== first?.id) await begin()
          return await one.ledger.append(runId, expected, events, options)
        },
      }
      const two = stage({
        ledger: view,
        clock: one.clock,
        random: seededRandom(2),
        steps: [{ text: 'Two.' }],
      })
      const joining = two.runtime.session(session).run(two.agent, 'Second.', { whenBusy: 'join' })
      const { id } = await begun
      await takenIn(one, id)
      open()
      const joined = await two.waitUntilSettled(joining)
      expect(joined.id).toBe(id)
      expect(await two.waitUntilSettled(joined.result)).toMatchObject({ reason: 'answered', text: 'Both.' })
      expect([await said(one), two.model.requests]).toEqual([['First.', 'Second.'], []])
      expect(await runIds(one.ledger)).toEqual([id])
    },
  )

  it('of an id that has begun a run is answered by that run, however often it comes', async () => {
    const set = stage({ steps: [{ text: 'One.' }, { text: 'Two.' }] })
    const join = (inputId: string) =>
      set.runtime.session(session).run(set.agent, inputId, { whenBusy: 'join', inputId })
    const one = await set.waitUntilSettled(join('a'))
    await set.waitUntilSettled(one.result)
    const two = await set.waitUntilSettled(join('b'))
    await set.waitUntilSettled(two.result)
    const again = await set.waitUntilSettled(join('a'))
    expect(again.id).toBe(one.id)
    expect(await set.waitUntilSettled(again.result)).toMatchObject({ text: 'One.' })
    expect(await said(set)).toEqual(['a', 'b'])
  })
})
