// A child run that waited is continued by another process than its parent: its end has to come up to the parent, once.
import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent, LedgerConflictError, memoryLedger, type Ledger } from '@tallystick/core'
import { manualClock, seededRandom, testTool } from '@tallystick/testkit'
import { canContinue } from '../src/runtime/children.ts'
import { asking, asksAgain, beforeReport, dyingAt, listening, office, type Process } from './office.ts'
import { checkedRun, ofType, recorded, stage, type Stage } from './stage.ts'

describe('the end of a child run in another process', () => {
  it('continues its parent there, and the parent of that one, with the context of the application', async () => {
    const set = office({ context: { user: 'ada' } })
    const { rootId, questions } = await set.begin()
    const other = set.open()
    const { approved } = await set.approve(other, questions[0]!)
    expect(await set.settled(approved)).toEqual({ accepted: true })
    await set.settled(other.runtime.idle())
    expect(await set.lastOf(rootId)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    expect([other.reported, set.times('pay')]).toEqual([[], 1])
  })

  it('makes its parent due, should that process die before it reports it', async () => {
    const set = office()
    const { rootId, managerId, questions } = await set.begin()
    const due = async () =>
      (await Array.fromAsync(set.ledger.due({ before: Infinity }))).map(({ runId }) => runId)
    expect(await due()).toEqual([])
    const view = beforeReport(set.ledger, () => Promise.reject(new Error('The process died here.')))
    const other = set.open({ view })
    const { approved } = await set.approve(other, questions[0]!)
    await set.settled(approved)
    await set.settled(other.runtime.idle())
    expect(await set.ledger.inbox(managerId)).toEqual([])
    expect(await due()).toEqual([managerId])
    await set.settled(set.open().runtime.resume(rootId).result)
    expect(await due()).toEqual([])
  })

  it('waits in the inbox of a parent whose agent that process does not know', async () => {
    const set = office()
    const { rootId, managerId, questions } = await set.begin()
    const other = set.open({ only: 'clerk' })
    const { approved } = await set.approve(other, questions[0]!)
    await set.settled(approved)
    await set.settled(other.runtime.idle())
    expect(other.reported).toEqual([])
    expect(await set.ledger.inbox(managerId)).toMatchObject([
      { key: `child ${questions[0]!.runId}`, command: { type: 'settle', outcome: 'success' } },
    ])
    expect([await set.epochOf(managerId), await set.epochOf(rootId)]).toEqual([1, 1])
    const result = await set.settled(set.open().runtime.resume(rootId).result)
    expect(result).toMatchObject({ reason: 'answered', text: 'All done.' })
    expect(await set.ledger.inbox(managerId)).toEqual([])
  })

  it('continues no parent once that process is drained', async () => {
    const set = office()
    const { managerId, questions } = await set.begin()
    const drains: Promise<unknown>[] = []
    const view = beforeReport(set.ledger, async () => void drains.push(other.runtime.drain(0)))
    const other = set.open({ view })
    const { approved } = await set.approve(other, questions[0]!)
    await set.settled(approved)
    await set.settled(Promise.all(drains))
    await set.settled(other.runtime.idle())
    expect(await set.lastOf(questions[0]!.runId)).toMatchObject({ type: 'run_finished' })
    expect([drains.length, await set.epochOf(managerId), other.reported]).toEqual([1, 1, []])
  })

  it('leaves a parent to the process that has taken it over meanwhile, and drives it', async () => {
    const set = office()
    const { rootId, questions } = await set.begin()
    const gate = Promise.withResolvers<void>()
    const third = set.open({ bossAnswers: gate.promise })
    // The manager ends: the boss has its answer from the ledger, and is about to answer itself.
    const first = set.open({ only: 'clerk' })
    await set.settled((await set.approve(first, questions[0]!)).approved)
    await set.settled(first.runtime.idle())
    let taken: Promise<unknown> = Promise.resolve()
    const view = beforeReport(set.ledger, async () => {
      taken = third.runtime.resume(rootId).result
      taken.catch(() => {})
      await set.until(() => asksAgain(set.ledger, rootId))
    })
    const other = set.open({ view })
    const [{ child: managerId } = {}] = ofType(await recorded(set.ledger, rootId), 'tool_started')
    expect(await set.settled(other.runtime.resume(managerId!).result)).toMatchObject({ text: 'Managed.' })
    await set.settled(other.runtime.idle())
    expect([await set.epochOf(rootId), other.reported]).toEqual([2, []])
    gate.resolve()
    expect(await set.settled(taken)).toMatchObject({ reason: 'answered', text: 'All done.' })
  })

  it('takes over no other child run of its parent, which another process drives', async () => {
    const set = office({ desks: 2 })
    const { rootId, questions } = await set.begin()
    const paid = Promise.withResolvers<string>()
    const slow = set.open({ pays: () => paid.promise })
    const { run, approved } = await set.approve(slow, questions[1]!)
    expect(await set.settled(approved)).toEqual({ accepted: true })
    const before = await set.epochOf(run.id)
    const other = set.open()
    await set.settled((await set.approve(other, questions[0]!)).approved)
    await set.settled(other.runtime.idle())
    expect([await set.epochOf(run.id), set.times('pay'), other.reported]).toEqual([before, 2, []])
    paid.resolve('paid')
    await set.settled(slow.runtime.idle())
    expect(await set.lastOf(rootId)).toMatchObject({ type: 'run_finished', reason: 'answered' })
    expect([set.times('pay'), slow.reported]).toEqual([2, []])
  })

  it('is left in the inbox of a parent that is at something else, for the process that drives it', async () => {
    const set = office({ isLooking: true })
    const seen = Promise.withResolvers<string>()
    const { runtime, rootId, questions } = await set.begin({ looks: () => seen.promise })
    const other = set.open()
    await set.settled((await set.approve(other, questions[0]!)).approved)
    await set.settled(other.runtime.idle())
    expect([await set.epochOf(rootId), set.times('look'), other.reported]).toEqual([1, 1, []])
    seen.resolve('seen')
    await set.settled(runtime.idle())
    expect(await set.lastOf(rootId)).toMatchObject({ type: 'run_finished', reason: 'answered', epoch: 1 })
  })

  it('is in the result of the run at the top, also if another process continued the run between them meanwhile', async () => {
    const set = office()
    const { rootId, managerId, questions } = await set.begin()
    const gate = Promise.withResolvers<void>()
    const view = beforeReport(set.ledger, async () => {
      other.runtime.resume(managerId)
      await set.until(() => asksAgain(set.ledger, managerId))
    })
    const other: Process = set.open({ view, managerAnswers: gate.promise })
    const run = other.runtime.resume(rootId)
    await set.settled(run.result)
    const { toolCallId } = questions[0]!
    expect(await set.settled(run.approve(toolCallId, { by: 'ada' }))).toEqual({ accepted: true })
    const result = run.result
    await set.until(() => asksAgain(set.ledger, managerId))
    for (let turn = 0; turn < 500; turn++) await Promise.resolve()
    gate.resolve()
    expect(await set.settled(result)).toMatchObject({ status: 'done', text: 'All done.' })
  })
})

describe('a run that is resumed', () => {
  /** An office whose clerk has got its approval, which no process has read yet. */
  const answered = async () => {
    const set = office()
    const { rootId, managerId, questions } = await set.begin()
    const { runId, toolCallId } = questions[0]!
    await set.ledger.put(runId, {
      ...{ key: 'k', at: 0, command: { type: 'approve', toolCallId, by: 'ada' } },
    })
    return { ...set, rootId, managerId, clerkId: runId }
  }

  it('continues its child runs at any depth where an answer has come for one of them', async () => {
    const set = await answered()
    expect(await set.settled(set.open().runtime.resume(set.rootId).result)).toMatchObject({
      text: 'All done.',
    })
    expect(set.times('pay')).toBe(1)
  })

  it('continues a child run whose own child run ended in a process that died before its report', async () => {
    const set = await answered()
    const dying: Ledger['put'] = () => Promise.reject(new Error('The process died here.'))
    const { runtime, reported } = set.open({ view: { ...set.ledger, put: dying }, only: 'clerk' })
    expect(await set.settled(runtime.resume(set.clerkId).result)).toMatchObject({ text: 'Paid.' })
    await set.settled(runtime.idle())
    expect(reported).toHaveLength(1)
    // That it may continue is on record: also for a reader that takes no child run over.
    for (const takeOver of [false, true])
      expect(await canContinue(set.ledger, set.rootId, { withChildren: takeOver, now: 0 })).toBe(true)
    const { ledger: view, put } = listening(set.ledger)
    const other = set.open({ view })
    expect(await set.settled(other.runtime.resume(set.rootId).result)).toMatchObject({ text: 'All done.' })
    await set.settled(other.runtime.idle())
    expect(put.map(({ key }) => key)).toEqual([`child ${set.managerId}`])
    expect(set.times('pay')).toBe(1)
  })

  it('leaves a child run to the process that takes it over in the same moment', async () => {
    const set = await answered()
    const acquire: Ledger['acquire'] = (runId) =>
      runId === set.managerId
        ? Promise.reject(new LedgerConflictError('epoch', 'Another process took it over.'))
        : set.ledger.acquire(runId)
    const { runtime, reported } = set.open({ view: { ...set.ledger, acquire } })
    expect(await set.settled(runtime.resume(set.rootId).result)).toMatchObject({ status: 'suspended' })
    expect([set.times('pay'), reported]).toEqual([0, []])
  })

  it('forwards no command about a call of a run that is not its child', async () => {
    const set = await answered()
    const [call] = ofType(await recorded(set.ledger, set.managerId), 'tool_deferred')
    const content = [{ type: 'text', text: 'Forged.' }] as const
    const command = { type: 'settle', toolCallId: call!.toolCallId, outcome: 'success', content } as const
    await set.ledger.put(set.clerkId, { key: 'strange', at: 1, command })
    const view = listening(set.ledger)
    const { runtime } = set.open({ view: view.ledger, only: 'clerk' })
    await set.settled(runtime.resume(set.clerkId).result)
    await set.settled(runtime.idle())
    expect(await set.ledger.inbox(set.clerkId)).toEqual([])
    expect(view.put.map(({ key }) => key)).toEqual([`child ${set.clerkId}`])
  })

  it('continues no child run once its runtime is drained', async () => {
    const set = await answered()
    const drains: Promise<unknown>[] = []
    const inbox: Ledger['inbox'] = async (runId) => {
      if (runId === set.managerId) drains.push(other.runtime.drain(0))
      return await set.ledger.inbox(runId)
    }
    const other: Process = set.open({ view: { ...set.ledger, inbox } })
    const result = await set.settled(other.runtime.resume(set.rootId).result)
    await set.settled(Promise.all(drains))
    await set.settled(other.runtime.idle())
    expect(result).toMatchObject({ status: 'suspended' })
    expect([drains.length, await set.epochOf(set.managerId), await set.epochOf(set.clerkId)]).toEqual([
      1, 1, 1,
    ])
  })
})

it('a child run that another process takes over while it is at work settles its call when it ends there', async () => {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const process = (dug: Promise<string>, seed: number): Stage => {
    const tools = [testTool({ name: 'dig', run: () => dug })]
    const works = { instructions: 'Work.', description: 'Digs.' }
    const worker = defineAgent({ ...works, name: 'worker', model: asking(['dig'], 'Dug.'), tools })
    const model = asking(['worker'], 'All done.')
    return stage({ ledger, clock, random: seededRandom(seed), model, tools: [agentTool(worker)] })
  }
  const [here, there] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  const [one, other] = [process(here.promise, 1), process(there.promise, 2)]
  const run = one.start()
  const startsOf = async (runId: string) => ofType(await recorded(ledger, runId), 'tool_started')
  const { until } = office()
  await until(async () => (await startsOf(run.id)).length === 1)
  const { child = '' } = (await startsOf(run.id))[0]!
  await until(async () => (await startsOf(child)).length === 1)
  other.runtime.resume(child, { takeOver: true })
  await until(async () => (await startsOf(child)).length === 2)
  here.resolve('dug')
  expect(await one.waitUntilSettled(run.result)).toMatchObject({ status: 'suspended', text: '' })
  there.resolve('dug')
  await other.waitUntilSettled(other.runtime.idle())
  const events = checkedRun(await recorded(ledger, run.id))
  expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'success', content: [{ text: 'Dug.' }] }])
  expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
  expect(await startsOf(child)).toHaveLength(2)
})

it('a child run that died below one that waits is taken over at once with the run at the top', async () => {
  const set = office({ isLooking: true })
  const seen = Promise.withResolvers<string>()
  const looks = (): Promise<string> => seen.promise
  const view = dyingAt(set.ledger, ({ type }, isOfFirst) => isOfFirst && type === 'tool_deferred')
  const { rootId, questions } = await set.begin({ view, looks })
  const dying = set.open({ view: dyingAt(set.ledger, ({ type }) => type === 'tool_result') })
  const { run, approved } = await set.approve(dying, questions[0]!)
  run.result.catch(() => {})
  await set.settled(approved)
  await set.settled(dying.runtime.idle())
  expect(await set.lastOf(run.id)).toMatchObject({ type: 'tool_started' })
  const third = set.open({ looks })
  const resumed = third.runtime.resume(rootId)
  // The boss is still looking.
  await set.until(async () => (await set.lastOf(run.id))?.type === 'run_finished')
  seen.resolve('seen')
  expect(await set.settled(resumed.result)).toMatchObject({ reason: 'answered', text: 'All done.' })
})
