import { describe, expect, it } from 'vitest'
import { digestOf, memoryLedger } from '@tallystick/core'
import { seededRandom, testTool } from '@tallystick/core/testing'
import { mortalLedger } from '@tallystick/core/testing'
import { checkedRun, ofType, stage } from './stage.ts'

const steps = [{ toolCalls: [{ name: 'pay', input: { amount: 1 } }] }, { text: 'Paid.' }]

/** A write that a person is asked about, and asked again where nobody knows whether it took effect. */
const pay = () =>
  testTool({
    name: 'pay',
    effect: 'write',
    recovery: 'ask',
    check: () => ({ kind: 'ask' }),
    run: () => 'Paid.',
  })

/** A run whose process died in the call that was approved, with another input where one is given. */
async function inDoubt(input?: { readonly amount: number }) {
  const ledger = memoryLedger()
  const first = stage({ ledger, steps, tools: [pay()] })
  const asked = (await first.play()).pendingApprovals[0]!
  const dying = stage({
    ...{ steps, tools: [pay()], clock: first.clock, random: seededRandom(2) },
    ledger: mortalLedger(ledger, { append: 2, stored: false }),
  })
  const theirs = dying.runtime.resume(asked.runId)
  await dying.settle(theirs.result)
  await dying.settle(
    theirs.approve(asked.toolCallId, { by: 'ada', ...(input && { input }) }).catch(() => undefined),
  )
  await dying.settle(theirs.result.catch(() => undefined))
  const set = stage({
    ledger,
    steps: [{ text: 'Paid.' }],
    tools: [pay()],
    clock: first.clock,
    random: seededRandom(3),
  })
  const run = set.runtime.resume(asked.runId)
  const again = (await set.settle(run.result)).pendingApprovals[0]!
  return { set, run, asked, again }
}

describe('a decision that comes again', () => {
  it('decides nothing about the next start of the call', async () => {
    const { set, run, asked, again } = await inDoubt()
    expect([asked.attempt, again.attempt]).toEqual([1, 2])
    const { toolCallId, attempt, inputDigest } = asked
    expect(await set.settle(run.approve(toolCallId, { by: 'ada', attempt, inputDigest }))).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
    expect(ofType(await set.eventsOf(run), 'tool_started')).toHaveLength(1)
    expect(
      await set.settle(run.approve(toolCallId, { by: 'ada', attempt: 2, inputDigest: again.inputDigest })),
    ).toEqual({ accepted: true })
    expect(await set.settle(run.result)).toMatchObject({ reason: 'answered' })
  })

  it('is bound to the input that will run: that of the approver, once there is one', async () => {
    const { set, run, asked, again } = await inDoubt({ amount: 2 })
    expect(again.input).toEqual({ amount: 2 })
    expect(again.inputDigest).toBe(digestOf({ amount: 2 }))
    const stale = { by: 'ada', attempt: 2, inputDigest: asked.inputDigest }
    expect(await set.settle(run.approve(asked.toolCallId, stale))).toMatchObject({ accepted: false })
    const { attempt, inputDigest } = again
    await set.settle(run.approve(asked.toolCallId, { by: 'ada', attempt, inputDigest }))
    await set.settle(run.result)
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'approval_requested').map((event) => event.inputDigest)).toEqual([
      asked.inputDigest,
      again.inputDigest,
    ])
    expect(ofType(events, 'approval_decided').map((event) => event.inputDigest)).toEqual([
      asked.inputDigest,
      again.inputDigest,
    ])
    expect(ofType(events, 'tool_started').map((event) => event.inputDigest)).toEqual([
      again.inputDigest,
      again.inputDigest,
    ])
  })
})
