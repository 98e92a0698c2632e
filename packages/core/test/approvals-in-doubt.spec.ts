import { describe, expect, it } from 'vitest'
import { memoryLedger, type RunResult } from '@tallystick/core'
import { mortalLedger, testTool, type TestTool } from '@tallystick/core/testing'
import { checkedRun, ofType, stage, typesOf, type Stage } from './stage.ts'

describe('a call in doubt whose tool wants a person to decide', () => {
  /** A run whose process died while the tool ran. */
  async function inDoubt(): Promise<{ set: Stage; rest: RunResult; send: TestTool }> {
    const ledger = memoryLedger()
    const dying = mortalLedger(ledger, { append: 7, stored: true })
    const steps = [{ toolCalls: [{ name: 'send', input: {} }] }, { text: 'Sent.' }]
    const make = (run?: () => Promise<string>): TestTool =>
      testTool({ name: 'send', effect: 'write', recovery: 'ask', ...(run && { run }) })
    const send = make()
    const first = stage({ ledger: dying, steps, tools: [make(() => new Promise(() => {}))] })
    const run = first.start()
    const dead = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => {
        if (type === 'tool_started') resolve()
      })
    })
    await first.untilSettled(dead)
    const set = stage({ ledger, clock: first.clock, steps: steps.slice(1), tools: [send] })
    const rest = await set.untilSettled(set.runtime.resume(run.id).result)
    return { set, rest, send }
  }

  it('is started again only if the person says so, under the same key', async () => {
    const { set, rest, send } = await inDoubt()
    expect(rest).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'send' }] })
    expect(rest.pendingApprovals[0]?.reason).toContain('nobody knows whether it took effect')
    const run = set.runtime.resume(rest.runId)
    await set.untilSettled(run.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    expect(await set.untilSettled(run.result)).toMatchObject({ status: 'done', toolCalls: 1 })
    const starts = ofType(checkedRun(await set.eventsOf(rest.runId)), 'tool_started')
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(new Set(starts.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
    expect(send.runs.map(({ attempt, idempotencyKey }) => [attempt, idempotencyKey])).toEqual([
      [2, starts[0]!.idempotencyKey],
    ])
  })

  it('stays in doubt for the model when the person says no', async () => {
    const { set, rest, send } = await inDoubt()
    const run = set.runtime.resume(rest.runId)
    await set.untilSettled(run.deny(rest.pendingApprovals[0]!, { by: 'ada', reason: 'it arrived' }))
    expect(await set.untilSettled(run.result)).toMatchObject({ status: 'done' })
    const events = checkedRun(await set.eventsOf(rest.runId))
    expect(ofType(events, 'tool_result').map(({ outcome }) => outcome)).toEqual(['interrupted'])
    expect(ofType(events, 'tool_result')[0]?.content).toMatchObject([
      {
        text: 'Nobody knows whether this call took effect, and ada decided not to start it again: it arrived',
      },
    ])
    expect(send.runs).toEqual([])
    expect(typesOf(events).filter((type) => type === 'tool_started')).toHaveLength(1)
  })
})
