import { describe, expect, it } from 'vitest'
import {
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  LedgerConflictError,
  RunNotFoundError,
  type Runtime,
  type RunId,
} from '@tallystick/core'
import { deriveRunId } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool, type ScriptedStep, type TestTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, type Stage, typesOf } from './stage.ts'

const calling = (name: string): ScriptedStep => ({ toolCalls: [{ name, input: {} }] })

/** Another process on the same ledger: a runtime with an agent of the same name. */
function worker(set: Stage, steps: readonly ScriptedStep[] = [], tools: readonly TestTool[] = []): Runtime {
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: set.agent.name, instructions: 'Work.', model, tools: [...tools] })
  return createRuntime({ ledger: set.ledger, agents: [agent], host: { clock: set.clock, report: () => {} } })
}

const later = (set: Stage): string => `call-${set.clock.now()}`

/** A tool that says when it has begun, and ends when the test says so. */
function heldTool() {
  const begun = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<string>()
  const slow = testTool({
    name: 'slow',
    run: () => {
      begun.resolve()
      return finish.promise
    },
  })
  return { slow, begun, finish }
}

describe('runtime.enqueue', () => {
  it('records a start and nothing else, which another process drives', async () => {
    const set = stage()
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    expect(typesOf(await set.eventsOf({ id: runId }))).toEqual(['run_started', 'input_received'])
    expect(await set.ledger.lease(runId)).toBeUndefined()
    const other = worker(set, [{ text: 'Hi.' }])
    expect(await set.waitUntilSettled(other.drive(runId))).toMatchObject({ status: 'done', pending: false })
    expect(await set.waitUntilSettled(other.resume(runId).result)).toMatchObject({ text: 'Hi.' })
    checkedRun(await set.eventsOf({ id: runId }))
  })

  it('starts a run once under a key, also when it was driven in between', async () => {
    const set = stage({ steps: [{ text: 'Hi.' }] })
    const enqueue = (): Promise<RunId> =>
      set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.', { idempotencyKey: 'order 7' }))
    const runId = await enqueue()
    expect(await enqueue()).toBe(runId)
    expect(await set.waitUntilSettled(set.runtime.drive(runId))).toMatchObject({ status: 'done' })
    const { seq } = (await set.ledger.head(runId))!
    expect(await enqueue()).toBe(runId)
    expect((await set.ledger.head(runId))!.seq).toBe(seq)
    await expect(
      set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Other.', { idempotencyKey: 'order 7' })),
    ).rejects.toThrow(ConfigurationError)
  })

  it('rejects for a session that is busy', async () => {
    const set = stage()
    await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'One.', { sessionId: 'chat' }))
    const second = set.runtime.enqueue(set.agent, 'Two.', { sessionId: 'chat' })
    await expect(set.waitUntilSettled(second)).rejects.toThrow(LedgerConflictError)
    const waiting = set.runtime.enqueue(set.agent, 'Two.', { sessionId: 'chat', whenBusy: 'wait' })
    await expect(set.waitUntilSettled(waiting)).rejects.toThrow(/whenBusy is wait/)
  })
})

describe('runtime.drive', () => {
  it('starts a run from data once, in whichever process it is delivered first', async () => {
    const set = stage()
    const runId = deriveRunId('order 8')
    const start = { agent: set.agent.name, input: 'Hello.', options: { subject: 'customer 7' } }
    const [one, two] = [worker(set, [{ text: 'Hi.' }]), worker(set, [{ text: 'Hi.' }])]
    const rests = await set.waitUntilSettled(
      Promise.all([one.drive(runId, { start }), two.drive(runId, { start })]),
    )
    expect(rests.map(({ status }) => status)).toContain('done')
    const events = checkedRun(await set.eventsOf({ id: runId }))
    expect(ofType(events, 'model_call_started')).toHaveLength(1)
    expect(ofType(events, 'run_started')).toMatchObject([{ subject: 'customer 7' }])
    expect(await set.waitUntilSettled(two.drive(runId, { start }))).toMatchObject({ status: 'done' })
    await expect(
      set.waitUntilSettled(one.drive(deriveRunId('9'), { start: { agent: 'nobody', input: 'Hello.' } })),
    ).rejects.toThrow(/agent nobody/)
    await expect(set.waitUntilSettled(one.drive(deriveRunId('9')))).rejects.toThrow(RunNotFoundError)
  })

  it('reports nothing of a start that its caller sees refused, since the session is busy', async () => {
    const set = stage()
    await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'One.', { sessionId: 'chat' }))
    const start = { agent: set.agent.name, input: 'Two.', options: { sessionId: 'chat' } }
    const driven = set.runtime.drive(deriveRunId('second'), { start })
    await expect(set.waitUntilSettled(driven)).rejects.toThrow(LedgerConflictError)
    expect(set.reported).toEqual([])
  })

  it('says when a run that waits for a person continues by itself', async () => {
    const ask = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const set = stage({ steps: [calling('pay')], tools: [ask] })
    const limits = { maxApprovalMs: 60_000 }
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Pay.', { limits }))
    const begun = set.clock.now()
    const rest = await set.waitUntilSettled(set.runtime.drive(runId))
    expect(rest).toEqual({ status: 'waiting', runId, seq: rest.seq, pending: false, wakeAt: begun + 60_000 })
    expect(await set.waitUntilSettled(set.runtime.resume(runId).result)).toMatchObject({
      wakeAt: begun + 60_000,
    })
  })

  it('parks a run that waits for the end of a retry-after, and continues at its time', async () => {
    const set = stage({ steps: [{ fail: 'rate_limited', retryAfterMs: 20_000 }, { text: 'Hi.' }] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    const rest = await set.waitUntilSettled(set.runtime.drive(runId, { parkMs: 1_000 }))
    expect(rest).toMatchObject({ status: 'parked', pending: false })
    expect(rest.wakeAt! - set.clock.now()).toBeGreaterThanOrEqual(20_000)
    expect(await set.ledger.lease(runId)).toBeUndefined()
    // Woken too early, it parks again and calls nobody.
    expect(await set.waitUntilSettled(worker(set).drive(runId, { parkMs: 1_000 }))).toMatchObject({
      status: 'parked',
      wakeAt: rest.wakeAt!,
    })
    set.clock.advance(rest.wakeAt! - set.clock.now())
    expect(await set.waitUntilSettled(set.runtime.drive(runId, { parkMs: 1_000 }))).toMatchObject({
      status: 'done',
    })
    checkedRun(await set.eventsOf({ id: runId }))
  })

  it('waits itself for what comes sooner than parkMs', async () => {
    const set = stage({ steps: [{ fail: 'rate_limited', retryAfterMs: 2_000 }, { text: 'Hi.' }] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    expect(await set.waitUntilSettled(set.runtime.drive(runId, { parkMs: 60_000 }))).toMatchObject({
      status: 'done',
    })
  })

  it('hands a run back after its time, once what is in flight has ended', async () => {
    const finish = Promise.withResolvers<string>()
    const slow = testTool({ name: 'slow', run: () => finish.promise })
    const set = stage({ steps: [calling('slow')], tools: [slow] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Work.'))
    const driving = set.runtime.drive(runId, { maxMs: 30_000 })
    const started = new Promise<void>((resolve) => {
      set.runtime.resume(runId).events$.subscribe(({ type }) => {
        if (type === 'tool_started') resolve()
      })
    })
    await started
    set.clock.advance(600_000)
    finish.resolve('late, and counted')
    expect(await set.waitUntilSettled(driving)).toMatchObject({ status: 'handedBack', pending: false })
    const events = checkedRun(await set.eventsOf({ id: runId }))
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'success' }])
    const other = worker(set, [{ text: 'Done.' }], [slow])
    expect(await set.waitUntilSettled(other.drive(runId))).toMatchObject({ status: 'done' })
    expect(slow.runs).toHaveLength(1)
  })

  it('hands a run back when its signal is aborted, and stops what is not done in its grace time', async () => {
    const stop = new AbortController()
    const begun = Promise.withResolvers<void>()
    const endless = testTool({
      name: 'endless',
      run: () => {
        begun.resolve()
        return new Promise(() => {})
      },
    })
    const set = stage({ steps: [calling('endless')], tools: [endless] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Work.'))
    const driving = set.runtime.drive(runId, { signal: stop.signal, graceMs: 2_000 })
    await begun.promise
    stop.abort()
    expect(await set.waitUntilSettled(driving)).toMatchObject({ status: 'handedBack' })
    expect(await set.ledger.lease(runId)).toBeUndefined()
    const aborted = set.runtime.drive(runId, { signal: stop.signal })
    expect(await set.waitUntilSettled(aborted)).toMatchObject({ status: 'handedBack' })
  })

  it('does not follow a run that another process drives: it is lost at once', async () => {
    const { slow, begun, finish } = heldTool()
    const set = stage({ steps: [calling('slow'), { text: 'Done.' }], tools: [slow] })
    const run = set.start()
    await begun.promise
    const rest = await worker(set).drive(run.id)
    expect(rest).toMatchObject({ status: 'lost', runId: run.id, pending: false })
    // Should that process die now, the run is to be driven when its lease has ended.
    const { leftMs } = (await set.ledger.lease(run.id))!
    expect(rest.wakeAt).toBe(set.clock.now() + leftMs)
    finish.resolve('fine')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'Done.' })
  })

  it('leaves nothing of itself to a later resume in the same process', async () => {
    const set = stage({ steps: [{ fail: 'rate_limited', retryAfterMs: 60_000 }, { text: 'Hi.' }] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    const handedBack = set.runtime.drive(runId, { signal: AbortSignal.abort() })
    expect(await set.waitUntilSettled(handedBack)).toMatchObject({ status: 'handedBack' })
    expect(await set.waitUntilSettled(set.runtime.drive(runId))).toMatchObject({ status: 'parked' })
    expect(await set.waitUntilSettled(set.runtime.resume(runId).result)).toMatchObject({ text: 'Hi.' })
  })

  it('lets a later resume follow another process', async () => {
    const begun = Promise.withResolvers<void>()
    const finish = Promise.withResolvers<string>()
    const pay = testTool({
      ...{ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) },
      run: () => {
        begun.resolve()
        return finish.promise
      },
    })
    const set = stage({ steps: [calling('pay')], tools: [pay] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Pay.'))
    expect(await set.waitUntilSettled(set.runtime.drive(runId))).toMatchObject({ status: 'waiting' })
    const { pendingApprovals } = await set.waitUntilSettled(set.runtime.resume(runId).result)
    const { toolCallId } = pendingApprovals[0]!
    await set.runtime.post(runId, { type: 'approve', toolCallId, by: 'ada' }, { key: 'a' })
    const driving = worker(set, [{ text: 'Paid.' }], [pay]).drive(runId)
    await begun.promise
    const followed = set.runtime.resume(runId).result
    finish.resolve('fine')
    expect(await set.waitUntilSettled(driving)).toMatchObject({ status: 'done' })
    expect(await set.waitUntilSettled(followed)).toMatchObject({ text: 'Paid.' })
  })

  it('does not park a run whose agent prepares a turn, however far its limit is', async () => {
    const set = stage({
      limits: { maxDurationMs: 600_000 },
      prepareTurn: async () => {
        await Promise.resolve()
        return { instructions: 'Be short.' }
      },
    })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    expect(await set.waitUntilSettled(set.runtime.drive(runId))).toMatchObject({ status: 'done' })
  })

  it('joins what drives the run in this process, and leaves it at its own end', async () => {
    const { slow, begun, finish } = heldTool()
    const set = stage({ steps: [calling('slow'), { text: 'Done.' }], tools: [slow] })
    const run = set.start()
    await begun.promise
    const joined = set.runtime.drive(run.id)
    const short = set.runtime.drive(run.id, { maxMs: 1_000 })
    const start = { agent: set.agent.name, input: 'Go.' }
    const aborted = set.runtime.drive(run.id, { start, signal: AbortSignal.abort() })
    set.clock.advance(1_000)
    expect(await short).toMatchObject({ status: 'handedBack' })
    expect(await aborted).toMatchObject({ status: 'handedBack' })
    finish.resolve('fine')
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'Done.' })
    expect(await joined).toMatchObject({ status: 'done' })
  })

  it('hands a run back when the runtime is drained, and refuses what comes later', async () => {
    const begun = Promise.withResolvers<void>()
    const slow = testTool({
      name: 'slow',
      run: () => {
        begun.resolve()
        return new Promise(() => {})
      },
    })
    const set = stage({ steps: [calling('slow')], tools: [slow] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Work.'))
    const driving = set.runtime.drive(runId)
    await begun.promise
    await set.waitUntilSettled(set.runtime.drain(1_000))
    expect(await set.waitUntilSettled(driving)).toMatchObject({ status: 'handedBack' })
    await expect(set.runtime.drive(runId)).rejects.toThrow(/drained/)
    await expect(set.runtime.enqueue(set.agent, 'More.')).rejects.toThrow(/drained/)
    await expect(set.runtime.enqueue(set.agent, 'More.', { idempotencyKey: 'more' })).rejects.toThrow(
      /drained/,
    )
    expect(await set.ledger.head(deriveRunId('more'))).toBeUndefined()
  })

  it('refuses a start that would wait for other runs', async () => {
    const set = stage()
    const options = { sessionId: 'chat', whenBusy: 'wait' }
    const start = { agent: set.agent.name, input: 'Hello.', options }
    await expect(set.runtime.drive(deriveRunId('10'), { start })).rejects.toThrow(/whenBusy is wait/)
  })

  it('refuses options that it does not know', async () => {
    const set = stage()
    const wrong = { timeoutMs: 5 } as object
    await expect(set.runtime.drive('7'.repeat(26), wrong)).rejects.toThrow(/maxMs/)
    await expect(set.runtime.drive('nothing')).rejects.toThrow(RunNotFoundError)
  })
})

/** A boss whose clerk is a run of its own. */
function office(clerkSteps: readonly ScriptedStep[], tools: readonly TestTool[] = []) {
  const set = stage()
  const open = (steps: readonly ScriptedStep[], own: readonly ScriptedStep[]): Runtime => {
    const clerk = defineAgent({
      ...{ name: 'clerk', description: 'Works.', instructions: 'Work.', tools: [...tools] },
      model: scriptedModel(own),
    })
    const model = scriptedModel(steps)
    const boss = defineAgent({ name: 'boss', instructions: 'Delegate.', model, tools: [agentTool(clerk)] })
    return createRuntime({ ledger: set.ledger, agents: [boss], host: { clock: set.clock, report: () => {} } })
  }
  const start = { agent: 'boss', input: 'Work.' }
  const runId = deriveRunId('boss')
  const first = open([{ toolCalls: [{ name: 'clerk', input: { task: 'Work.' } }] }], clerkSteps)
  return { set, open, start, runId, first }
}

describe('a run with a child run', () => {
  it('is parked with it, and both continue in another process', async () => {
    const { set, open, start, runId, first } = office([{ fail: 'rate_limited', retryAfterMs: 20_000 }])
    const rest = await set.waitUntilSettled(first.drive(runId, { start, parkMs: 1_000 }))
    expect(rest).toMatchObject({ status: 'waiting', pending: false })
    expect(rest.wakeAt! - set.clock.now()).toBeGreaterThan(1_000)
    set.clock.advance(rest.wakeAt! - set.clock.now())
    const second = open([{ text: 'All done.' }], [{ text: 'Done.' }])
    expect(await set.waitUntilSettled(second.drive(runId, { parkMs: 1_000 }))).toMatchObject({
      status: 'done',
    })
    expect(await set.waitUntilSettled(second.resume(runId).result)).toMatchObject({ text: 'All done.' })
  })

  it('continues it when its deadline has come', async () => {
    const defer = testTool({
      name: 'export',
      effect: 'write',
      run: (_run, report) => {
        report.defer('job-7', 40_000)
        return ''
      },
    })
    const { set, open, start, runId, first } = office([calling('export')], [defer])
    const rest = await set.waitUntilSettled(first.drive(runId, { start }))
    expect(rest).toMatchObject({ status: 'waiting' })
    set.clock.advance(rest.wakeAt! - set.clock.now())
    const second = open([{ text: 'All done.' }], [{ text: 'It was late.' }])
    expect(await set.waitUntilSettled(second.drive(runId))).toMatchObject({ status: 'done' })
    checkedRun(await set.eventsOf({ id: runId }))
  })

  it('is handed back with it', async () => {
    const stop = new AbortController()
    const begun = Promise.withResolvers<void>()
    const slow = testTool({
      name: 'slow',
      recovery: 'rerun',
      run: (_run, report) => {
        begun.resolve()
        void report
        return slow.runs.length > 1 ? 'fine' : new Promise(() => {})
      },
    })
    const { set, open, start, runId, first } = office([calling('slow')], [slow])
    const driving = first.drive(runId, { start, signal: stop.signal, graceMs: 1_000 })
    await begun.promise
    stop.abort()
    expect(await set.waitUntilSettled(driving)).toMatchObject({ status: 'handedBack' })
    const second = open([{ text: 'All done.' }], [{ text: 'Done.' }])
    expect(await set.waitUntilSettled(second.drive(runId))).toMatchObject({ status: 'done' })
    expect(await set.waitUntilSettled(second.resume(runId).result)).toMatchObject({ text: 'All done.' })
  })

  it('gets a decision about a call of it by way of its own inbox', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const { set, open, start, runId, first } = office([calling('pay')], [pay])
    await set.waitUntilSettled(first.drive(runId, { start }))
    const rest = await set.waitUntilSettled(first.resume(runId).result)
    const [approval] = rest.pendingApprovals
    const web = open([], [])
    const command = { type: 'approve', toolCallId: approval!.toolCallId, by: 'ada' } as const
    const posted = await set.waitUntilSettled(web.post(approval!.runId, command, { key: later(set) }))
    expect(posted).toEqual({ accepted: true, wake: runId })
    // In that of the root, whose driver looks there last before it rests.
    expect(await set.ledger.inbox(runId)).toMatchObject([{ command }])
    expect(pay.runs).toHaveLength(0)
    const second = open([{ text: 'All done.' }], [{ text: 'Paid.' }])
    expect(await set.waitUntilSettled(second.drive(runId))).toMatchObject({ status: 'done' })
    expect(pay.runs).toHaveLength(1)
  })
})

describe('a run with a child run in a stretch', () => {
  it('hands the child run back with the stretch that drives both, whoever joined since', async () => {
    const stop = new AbortController()
    const begun = Promise.withResolvers<void>()
    const slow = testTool({
      ...{ name: 'slow', recovery: 'rerun' },
      run: () => {
        begun.resolve()
        return slow.runs.length > 1 ? 'fine' : new Promise(() => {})
      },
    })
    const { set, open, start, runId, first } = office([calling('slow')], [slow])
    const driving = first.drive(runId, { start, signal: stop.signal, graceMs: 1_000 })
    const joined = first.drive(runId, { start })
    await begun.promise
    stop.abort()
    const rests = await set.waitUntilSettled(Promise.all([driving, joined]))
    expect(rests).toMatchObject([{ status: 'handedBack' }, { status: 'handedBack' }])
    const second = open([{ text: 'All done.' }], [{ text: 'Done.' }])
    expect(await set.waitUntilSettled(second.drive(runId))).toMatchObject({ status: 'done' })
    checkedRun(await set.eventsOf({ id: runId }))
  })

  it('continues the child run for a command in its own inbox', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const { set, open, start, runId, first } = office([calling('pay')], [pay])
    await set.waitUntilSettled(first.drive(runId, { start }))
    const { pendingApprovals } = await set.waitUntilSettled(first.resume(runId).result)
    const child = pendingApprovals[0]!.runId
    const web = open([], [])
    const posted = await web.post(child, { type: 'cancel', reason: 'Not now.' }, { key: 'a' })
    expect(posted).toEqual({ accepted: true, wake: runId })
    const second = open([{ text: 'All done.' }], [])
    expect(await set.waitUntilSettled(second.drive(runId))).toMatchObject({ status: 'done', pending: false })
    expect(pay.runs).toHaveLength(0)
  })
})

describe('runtime.post', () => {
  it('checks a command, puts it once, and drives nothing', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const set = stage({ steps: [calling('pay'), { text: 'Paid.' }], tools: [pay] })
    const run = set.start()
    const { toolCallId } = (await set.waitUntilSettled(run.result)).pendingApprovals[0]!
    const web = worker(set)
    const approve = { type: 'approve', toolCallId, by: 'ada' } as const
    const { seq } = (await set.ledger.head(run.id))!
    const wake = run.id
    expect(await web.post(run.id, approve, { key: 'a' })).toEqual({ accepted: true, wake })
    expect(await web.post(run.id, approve, { key: 'a' })).toEqual({ accepted: true, wake })
    // Another command under the key would be lost, so it is not accepted.
    const deny = { type: 'deny', toolCallId, by: 'ada', reason: 'No.' } as const
    for (const other of [deny, { ...approve, by: 'ben' }, { ...approve, input: { usd: 1 } }])
      await expect(web.post(run.id, other, { key: 'a' })).rejects.toMatchObject({ kind: 'unique' })
    expect(await set.ledger.inbox(run.id)).toHaveLength(1)
    expect((await set.ledger.head(run.id))!.seq).toBe(seq)
    const other = worker(set, [{ text: 'Paid.' }], [pay])
    expect(await set.waitUntilSettled(other.drive(run.id))).toMatchObject({ status: 'done' })
    expect(pay.runs).toHaveLength(1)
    expect(await web.post(run.id, approve, { key: 'b' })).toMatchObject({ accepted: false, wake })
    // It is refused now for what it did itself: its first answer was lost, say.
    expect(await web.post(run.id, approve, { key: 'a' })).toEqual({ accepted: true, wake })
    const again = other.send(run.id, approve, { key: 'a' })
    await expect(set.waitUntilSettled(again)).rejects.toMatchObject({ kind: 'unique' })
    expect(await web.post(run.id, deny, { key: 'a' })).toMatchObject({ accepted: false, wake })
  })

  it('refuses what the run does not allow, and what is no command', async () => {
    const set = stage({ steps: [{ text: 'Hi.' }] })
    const runId = await set.waitUntilSettled(set.runtime.enqueue(set.agent, 'Hello.'))
    const missing = { type: 'approve', toolCallId: 'nowhere', by: 'ada' } as const
    expect(await set.runtime.post(runId, missing, { key: 'a' })).toMatchObject({ code: 'unknown_call' })
    const wrong = { type: 'approve' } as never
    expect(await set.runtime.post(runId, wrong, { key: 'a' })).toMatchObject({ code: 'malformed' })
    expect(await set.ledger.inbox(runId)).toEqual([])
    const steer = {
      type: 'steer',
      receipt: 'steer 1',
      message: { role: 'user', parts: [{ type: 'text', text: 'Hurry.' }] },
    } as const
    expect(await set.runtime.post(runId, steer, { key: 'a' })).toMatchObject({ accepted: true })
    await expect(set.runtime.post('7'.repeat(26), steer, { key: 'a' })).rejects.toThrow(RunNotFoundError)
    await expect(set.runtime.post(runId, steer, {} as never)).rejects.toThrow(ConfigurationError)
    // A memory ledger has no transaction that the command could be undone with.
    await expect(set.runtime.post(runId, steer, { key: 'b', within: {} })).rejects.toThrow(/within/)
  })
})
