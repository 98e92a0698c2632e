import { describe, expect, it } from 'vitest'
import { type Guardrail, type RunResult, type RunState } from '@tallystick/core'
import { isSuspended } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage, typesOf, type Stage } from './stage.ts'

async function listed({ runtime }: Stage): Promise<readonly RunResult[]> {
  const found: RunResult[] = []
  for await (const result of runtime.suspended()) found.push(result)
  return found
}

/** Another process on the same ledger. */
function another({ ledger, clock, agent }: Stage): Stage {
  return stage({ ledger, clock, tools: agent.tools, guardrails: agent.guardrails, limits: agent.limits })
}

/** A run that waits for a person about one call, and that gets no decision within an hour. */
async function asking(): Promise<{ readonly set: Stage; readonly rest: RunResult }> {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }]
  const set = stage({ steps, tools: [pay], limits: { maxDurationMs: 60_000, maxApprovalMs: 3_600_000 } })
  return { set, rest: await set.play() }
}

describe('a run that rests at a limit while a guardrail looks', () => {
  it('is suspended once the guardrail has looked, for its result, the list and a resume alike', async () => {
    const verdict = Promise.withResolvers<'pass'>()
    const beside: Guardrail = { name: 'slow', on: 'input', beside: true, check: () => verdict.promise }
    const set = stage({ guardrails: [beside], limits: { maxTurns: 0, onLimit: 'ask' } })
    const run = set.start()
    let last: RunState | undefined
    run.state$.subscribe((state) => (last = state))
    set.clock.schedule(500, () => verdict.resolve('pass'))
    const result = await set.waitUntilSettled(run.result)
    expect(result).toMatchObject({ status: 'suspended', limit: 'maxTurns' })
    expect(last && isSuspended(last)).toBe(true)
    expect((await listed(set)).map(({ runId }) => runId)).toEqual([run.id])
    const resumed = another(set)
    await resumed.waitUntilSettled(resumed.runtime.resume(run.id).raiseLimit('maxTurns', 5, { by: 'ada' }))
    const events = await set.eventsOf(run)
    expect(typesOf(events)).toContain('guardrails_checked')
    expect(events.find(({ type }) => type === 'run_resumed')).toMatchObject({ why: 'command' })
  })
})

describe('a run that is suspended', () => {
  it('is not written to by those who only look at it, however many they are', async () => {
    const { set, rest } = await asking()
    const before = await set.eventsOf(rest.runId)
    for (let look = 0; look < 50; look++) {
      const own = another(set)
      expect(await own.waitUntilSettled(own.runtime.resume(rest.runId).result)).toEqual(rest)
    }
    expect(await set.eventsOf(rest.runId)).toEqual(before)
  })

  it('records the take-over with what follows from it', async () => {
    const { set, rest } = await asking()
    const { toolCallId } = rest.pendingApprovals[0]!
    const own = another(set)
    const run = own.runtime.resume(rest.runId)
    await own.waitUntilSettled(run.result)
    expect(await own.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))).toEqual({ accepted: true })
    await own.waitUntilSettled(run.result)
    const types = typesOf((await set.eventsOf(rest.runId)).slice(rest.seq))
    expect(types.slice(0, 3)).toEqual(['run_resumed', 'approval_decided', 'tool_started'])
  })

  it('does not use up its time, and continues without a command where its time to decide is over', async () => {
    const { set, rest } = await asking()
    set.clock.advance(600_000)
    const early = another(set)
    expect(await early.waitUntilSettled(early.runtime.resume(rest.runId).result)).toEqual(rest)
    set.clock.advance(3_600_000)
    const late = another(set)
    expect(await late.waitUntilSettled(late.runtime.resume(rest.runId).result)).toMatchObject({
      reason: 'answered',
    })
    const events = (await set.eventsOf(rest.runId)).slice(rest.seq)
    expect(typesOf(events).slice(0, 2)).toEqual(['run_resumed', 'approval_decided'])
    expect(events.some(({ type }) => type === 'limit_reached')).toBe(false)
  })
})

describe('a run that waits for an approval and at a limit', () => {
  it('counts the approval as denied once its time is over, before the limit is raised', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const looked = Promise.withResolvers<string>()
    const set = stage({
      steps: [{ toolCalls: ['look', 'pay'].map((name) => ({ name, input: {} })) }, { text: 'Not paid.' }],
      tools: [testTool({ name: 'look', run: () => looked.promise }), pay],
      limits: { maxDurationMs: 50, maxApprovalMs: 100, onLimit: 'ask' },
    })
    const run = set.start()
    set.clock.schedule(60, () => looked.resolve('seen'))
    const { limit, pendingApprovals } = await set.waitUntilSettled(run.result)
    expect([limit, pendingApprovals.length]).toEqual(['maxDurationMs', 1])
    set.clock.advance(100)
    const late = await set.waitUntilSettled(run.approve(pendingApprovals[0]!, { by: 'ada' }))
    expect(late).toMatchObject({ accepted: false, code: 'approval_expired' })
    const rest = { status: 'suspended', limit: 'maxDurationMs', pendingApprovals: [] }
    expect(await set.waitUntilSettled(run.result)).toMatchObject(rest)
    await set.waitUntilSettled(run.raiseLimit('maxDurationMs', 1_000, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Not paid.' })
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'approval_decided')).toMatchObject([{ approved: false, by: 'expiry' }])
    expect(typesOf(events).filter((type) => type === 'tool_started')).toHaveLength(1)
  })
})

describe('a run that was drained while something of it was under way', () => {
  it('is interrupted: its result says what the list says', async () => {
    const slow = testTool({ name: 'slow', run: () => new Promise(() => {}) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'slow', input: {} }] }], tools: [slow] })
    const run = set.start()
    const started = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'tool_started' && resolve())
    })
    await set.waitUntilSettled(started)
    expect(await set.waitUntilSettled(set.runtime.drain(10))).toMatchObject([{ status: 'interrupted' }])
    expect(await listed(set)).toEqual([])
  })
})
