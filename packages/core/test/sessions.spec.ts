import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  LedgerConflictError,
  joinText,
  type Ledger,
  type Message,
  type RunId,
} from '@tallystick/core'
import { checkTranscript, seededRandom, testTool, type ScriptedStep } from '@tallystick/testkit'
import { checkedRun, ofType, stage as stageOf, type Stage, type StageOptions } from './stage.ts'

let processes = 0
/** A process: its run ids are its own. */
const stage = (options: StageOptions): Stage => stageOf({ random: seededRandom(++processes), ...options })

const said = (messages: readonly Message[] = []): readonly string[] =>
  messages.map((message) =>
    message.role === 'tool' ? '(results)' : `${message.role}: ${joinText(message.parts)}`,
  )

const answers = (...texts: readonly string[]): readonly ScriptedStep[] => texts.map((text) => ({ text }))

async function playIn(
  { runtime, agent, waitUntilSettled: settle }: Stage,
  input: string,
  options: Parameters<Stage['runtime']['run']>[2] = { sessionId: 'chat' },
) {
  return await settle(runtime.run(agent, input, options).result)
}

describe('a session', () => {
  it('carries the history over runs, from the ledger alone', async () => {
    const first = stage({ steps: answers('Hello Ada.') })
    await playIn(first, 'I am Ada.')
    // Another process, with nothing but the ledger.
    const second = stage({ ledger: first.ledger, clock: first.clock, steps: answers('You are Ada.') })
    const { runId } = await playIn(second, 'Who am I?')
    expect(said(second.model.requests[0]?.messages)).toEqual([
      'user: I am Ada.',
      'assistant: Hello Ada.',
      'user: Who am I?',
    ])
    const events = checkedRun(await second.eventsOf(runId))
    expect(ofType(events, 'run_started')).toMatchObject([
      { sessionId: 'chat', sessionPlace: 2, parent: { relation: 'session' } },
    ])
    expect(ofType(events, 'history_carried')[0]?.messages).toHaveLength(2)
  })

  it('lists its runs and its history, and need not have begun', async () => {
    const set = stage({ steps: answers('One.', 'Two.') })
    const session = set.runtime.session('chat')
    expect(await session.history()).toBeUndefined()
    const a = await playIn(set, '1')
    const b = await playIn(set, '2')
    await playIn(set, 'elsewhere', { sessionId: 'other' })
    const runs: RunId[] = []
    for await (const { runId } of session.runs()) runs.push(runId)
    expect(runs).toEqual([b.runId, a.runId])
    expect(said((await session.history())?.messages)).toEqual([
      'user: 1',
      'assistant: One.',
      'user: 2',
      'assistant: Two.',
    ])
  })

  it('keeps finished work whatever its runs end in: cancel, failure, limit', async () => {
    const look = testTool({ name: 'look', run: () => 'found 42' })
    const toolReply = { text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] }
    const endings: readonly (readonly ScriptedStep[])[] = [
      [toolReply, { fail: 'authentication' }],
      [toolReply, { text: 'So far', hang: true }],
      [toolReply, { text: 'Never.' }],
    ]
    for (const [index, steps] of endings.entries()) {
      const set = stage({ steps, tools: [look], limits: index === 2 ? { maxTurns: 1, onLimit: 'stop' } : {} })
      const run = set.runtime.run(set.agent, 'Look.', { sessionId: 'chat' })
      run.textUpdates$.subscribe(({ text }) => {
        if (text.startsWith('So')) run.cancel().catch(() => {})
      })
      await set.waitUntilSettled(run.result)
      const next = stage({
        ledger: set.ledger,
        clock: set.clock,
        steps: answers('It was 42.'),
        tools: [look],
      })
      const { runId } = await playIn(next, 'What was it?')
      const messages = next.model.requests[0]?.messages ?? []
      expect(JSON.stringify(messages)).toContain('found 42')
      expect(checkTranscript(messages)).toEqual([])
      checkedRun(await next.eventsOf(runId))
    }
  })

  it('refuses a run beside one that is under way, or that waits, with a clean conflict', async () => {
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }],
      tools: [pay],
    })
    const waiting = set.runtime.run(set.agent, 'Pay.', { sessionId: 'chat' })
    const [pending] = (await set.waitUntilSettled(waiting.result)).pendingApprovals
    const second = set.runtime.run(set.agent, 'Hello?', { sessionId: 'chat' })
    await expect(set.waitUntilSettled(second.result)).rejects.toMatchObject({
      ...{ name: 'LedgerConflictError', kind: 'session' },
      message: expect.stringMatching(new RegExp(`Run ${waiting.id} of session chat waits`)) as string,
    })
    expect(await set.eventsOf(second)).toEqual([])
    await set.waitUntilSettled(waiting.approve(pending!.toolCallId, { by: 'ada' }))
    expect(await set.waitUntilSettled(waiting.result)).toMatchObject({ reason: 'answered' })
    checkedRun(await set.eventsOf(waiting))
  })

  it('lets one of two runs begin that are started at the same moment, whatever processes they are in', async () => {
    const one = stage({ steps: answers('One.') })
    const two = stage({ ledger: one.ledger, clock: one.clock, steps: answers('Two.') })
    const runs = [one, two].map(({ runtime, agent }) => runtime.run(agent, 'Go.', { sessionId: 'chat' }))
    const results = await one.waitUntilSettled(Promise.allSettled(runs.map((run) => run.result)))
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const [refused] = results.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
    expect(refused).toBeInstanceOf(LedgerConflictError)
    const busy = runs.find((_, index) => results[index]?.status === 'fulfilled')?.id
    expect(refused).toMatchObject({ kind: 'session', busy: { runId: busy } })
  })

  it('refuses a run that another one has overtaken at its start, also if that has ended by then: it may have done the same', async () => {
    const pay = testTool({ name: 'pay' })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const other = stage({ steps, tools: [pay] })
    let goesOn = (): void => {}
    const held = new Promise<void>((resolve) => (goesOn = resolve))
    const slow: typeof other.ledger = Object.assign(Object.create(other.ledger) as typeof other.ledger, {
      append: async (...args: Parameters<typeof other.ledger.append>) => {
        await held
        return await other.ledger.append(...args)
      },
    })
    const late = stage({ ledger: slow, clock: other.clock, steps, tools: [testTool({ name: 'pay' })] })
    const overtaken = late.runtime.run(late.agent, 'Pay.', { sessionId: 'chat' })
    expect(await playIn(other, 'Pay.')).toMatchObject({ reason: 'answered' })
    goesOn()
    await expect(late.waitUntilSettled(overtaken.result)).rejects.toMatchObject({ kind: 'unique' })
    expect(late.model.requests).toEqual([])
    expect(await other.eventsOf(overtaken)).toEqual([])
  })

  it('queues a run after the one that is under way, in this process or another', async () => {
    let end: (() => void) | undefined
    const until = new Promise<void>((resolve) => {
      end = resolve
    })
    const one = stage({ steps: [{ text: 'One.', until }] })
    const first = one.runtime.run(one.agent, '1', { sessionId: 'chat' })
    const begun = new Promise((resolve) => first.events$.subscribe(resolve))
    await begun
    const two = stage({ ledger: one.ledger, clock: one.clock, steps: answers('Two.') })
    const second = two.runtime.run(two.agent, '2', { sessionId: 'chat', whenBusy: 'wait' })
    const third = one.runtime.run(one.agent, '3', { sessionId: 'other' })
    await one.waitUntilSettled(third.result)
    expect(await two.eventsOf(second)).toEqual([])
    end?.()
    await one.waitUntilSettled(first.result)
    expect(await two.waitUntilSettled(second.result)).toMatchObject({ reason: 'answered', text: 'Two.' })
    expect(said(two.model.requests[0]?.messages)).toEqual(['user: 1', 'assistant: One.', 'user: 2'])
  })

  it('queues many at once, each after the one before it', async () => {
    const set = stage({ steps: Array.from({ length: 5 }, (_, index) => ({ text: `Answer ${index + 1}.` })) })
    const options = { sessionId: 'chat', whenBusy: 'wait' } as const
    const runs = [1, 2, 3, 4, 5].map((n) => set.runtime.run(set.agent, `Question ${n}.`, options))
    await set.waitUntilSettled(Promise.all(runs.map((run) => run.result)))
    const { messages = [] } = (await set.runtime.session('chat').history()) ?? {}
    expect(said(messages)).toEqual(
      [1, 2, 3, 4, 5].flatMap((n) => [`user: Question ${n}.`, `assistant: Answer ${n}.`]),
    )
  })

  it.each(['conflict', 'wait', 'join'] as const)(
    'begins after a run that ends between the look at it and the look at its driver (%s)',
    async (whenBusy) => {
      let end: (() => void) | undefined
      const until = new Promise<void>((resolve) => {
        end = resolve
      })
      const one = stage({ steps: [{ text: 'One.', until }] })
      const first = one.runtime.run(one.agent, '1', { sessionId: 'chat' })
      await new Promise((resolve) => first.events$.subscribe(resolve))
      const lease: Ledger['lease'] = async (runId) => {
        end?.()
        await first.result
        return await one.ledger.lease(runId)
      }
      const two = stage({ ledger: { ...one.ledger, lease }, clock: one.clock, steps: answers('Two.') })
      const second = await one.waitUntilSettled(two.runtime.session('chat').run(two.agent, '2', { whenBusy }))
      expect(await one.waitUntilSettled(second.result)).toMatchObject({ reason: 'answered', text: 'Two.' })
      expect(said(two.model.requests[0]?.messages)).toEqual(['user: 1', 'assistant: One.', 'user: 2'])
    },
  )

  it('joins the run that is under way: the input reaches it, and it is the answer', async () => {
    let end: (() => void) | undefined
    const until = new Promise<void>((resolve) => {
      end = resolve
    })
    const one = stage({ steps: [{ text: 'One.', until }, { text: 'And two.' }] })
    const first = one.runtime.run(one.agent, '1', { sessionId: 'chat' })
    await new Promise((resolve) => first.events$.subscribe(resolve))
    // From another process, which does not take the run over.
    const other = createRuntime({ ledger: one.ledger, agents: [one.agent], host: { clock: one.clock } })
    const joining = other.session('chat').run(one.agent, 'And 2?', { whenBusy: 'join' })
    while (ofType(await one.eventsOf(first), 'input_received').length < 2) await Promise.resolve()
    end?.()
    const joined = await one.waitUntilSettled(joining)
    expect(joined.id).toBe(first.id)
    expect(await one.waitUntilSettled(joined.result)).toMatchObject({
      runId: first.id,
      text: 'And two.',
      turns: 2,
    })
    const events = checkedRun(await one.eventsOf(first))
    expect(ofType(events, 'run_resumed')).toEqual([])
    const alone = await other.session('fresh').run(one.agent, 'Hello.', { whenBusy: 'join' })
    expect(alone.id).not.toBe(first.id)
  })
})

describe('a branch', () => {
  it('of a session begins where another run was, up to any event, and leaves the session as it is', async () => {
    const look = testTool({ name: 'look', run: () => 'found' })
    const steps = [
      { text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Found it.' },
      { text: 'Elsewhere.' },
    ]
    const set = stage({ steps, tools: [look] })
    const first = await playIn(set, 'Look.')
    const events = await set.eventsOf(first.runId)
    for (const { seq } of events) {
      const branch = stage({ ledger: set.ledger, clock: set.clock, steps: answers('Branch.'), tools: [look] })
      const from = { runId: first.runId, atSeq: seq }
      const { runId } = await playIn(branch, 'Continue.', { sessionId: `branch at ${seq}`, from })
      expect(checkTranscript(branch.model.requests[0]?.messages ?? [])).toEqual([])
      const [started] = ofType(checkedRun(await branch.eventsOf(runId)), 'run_started')
      expect(started).toMatchObject({
        sessionPlace: 1,
        parent: { runId: first.runId, seq, relation: 'branch' },
      })
    }
    expect((await set.runtime.session('chat').history())?.messages).toHaveLength(4)
  })

  it('of the same session is a step back', async () => {
    const set = stage({ steps: answers('One.', 'Two.', 'Two again.') })
    const first = await playIn(set, '1')
    await playIn(set, '2')
    await playIn(set, '2, but other', { sessionId: 'chat', from: { runId: first.runId } })
    expect(said((await set.runtime.session('chat').history())?.messages)).toEqual([
      ...['user: 1', 'assistant: One.', 'user: 2, but other', 'assistant: Two again.'],
    ])
  })

  it('made as a fork follows the last run of the session that it is given, or begins one, or belongs to none', async () => {
    const set = stage({ steps: answers('One.', 'Two.', 'Again.', 'Again.', 'Again.', 'Alone.') })
    const { runId } = await playIn(set, '1')
    await playIn(set, '2')
    const places: unknown[] = []
    for (const sessionId of ['new', 'new', 'chat', undefined]) {
      const fork = set.runtime.fork(runId, { atSeq: 2, sessionId })
      await set.waitUntilSettled(fork.result)
      const [started] = ofType(checkedRun(await set.eventsOf(fork)), 'run_started')
      places.push([started?.sessionId, started?.sessionPlace])
    }
    expect(places).toEqual([
      ['new', 1],
      ['new', 2],
      ['chat', 3],
      [undefined, undefined],
    ])
    expect(said((await set.runtime.session('chat').history())?.messages)).toEqual([
      ...['user: 1', 'assistant: Again.'],
    ])
  })

  it('from nowhere, or from an event that is not there, is refused', async () => {
    const set = stage({ steps: answers('One.') })
    const { runId } = await playIn(set, '1')
    await expect(playIn(set, 'x', { from: { runId: 'nobody' } })).rejects.toThrow(
      /Run nobody is not in this ledger/,
    )
    await expect(playIn(set, 'x', { from: { runId, atSeq: 99 } })).rejects.toThrow(
      /cannot begin from its event 99/,
    )
  })
})

describe('an edit of the past', () => {
  it('is a recorded event: messages are changed or gone in what the model sees', async () => {
    const set = stage({ steps: answers('Noted.', 'Fine.', 'I see.') })
    await playIn(set, 'My key is sk-1.')
    const second = await playIn(set, 'How are you?')
    const edit = {
      ...{ of: second.runId, by: 'ada', reason: 'a key' },
      edits: [
        { index: 0, message: { role: 'user', parts: [{ type: 'text', text: 'My key is ….' }] } as const },
        { index: 2 },
        { index: 3 },
      ],
    }
    const { runId } = await playIn(set, 'What did I say?', { sessionId: 'chat', edit })
    expect(said(set.model.requests[2]?.messages)).toEqual([
      ...['user: My key is ….', 'assistant: Noted.', 'user: What did I say?'],
    ])
    const events = checkedRun(await set.eventsOf(runId))
    expect(ofType(events, 'history_edited')).toMatchObject([
      { by: 'ada', reason: 'a key', edits: [{ index: 0 }, { index: 2 }, { index: 3 }] },
    ])
    expect(JSON.stringify((await set.runtime.session('chat').history())?.messages)).not.toContain('sk-1')
  })

  it('of another past than the one that the run follows is a conflict', async () => {
    const set = stage({ steps: answers('One.', 'Two.') })
    const first = await playIn(set, '1')
    await playIn(set, '2')
    const edit = { of: first.runId, edits: [{ index: 0 }] }
    await expect(playIn(set, '3', { sessionId: 'chat', edit })).rejects.toMatchObject({ kind: 'session' })
  })

  it('that would part a call from its result, or names no message, is refused before anything is written', async () => {
    const look = testTool({ name: 'look' })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }],
      tools: [look],
    })
    const { runId } = await playIn(set, 'Look.')
    for (const edits of [[{ index: 2 }], [{ index: 9 }], [{ index: 1 }, { index: 0 }]]) {
      await expect(playIn(set, 'x', { sessionId: 'chat', edit: { of: runId, edits } })).rejects.toMatchObject(
        {
          name: 'ConfigurationError',
        },
      )
    }
  })
})
