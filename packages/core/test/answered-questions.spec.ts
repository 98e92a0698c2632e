import { describe, expect, it } from 'vitest'
import { memoryLedger } from '@tallystick/core'
import { computeDigest } from '@tallystick/core/vocabulary'
import { seededRandom, testTool } from '@tallystick/testkit'
import { mortalLedger } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

const steps = [{ toolCalls: [{ name: 'pay', input: { amount: 1 } }] }, { text: 'Paid.' }]

/** A write that a person is asked about, and asked again if it is unknown whether it took effect. */
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
  await dying.waitUntilSettled(theirs.result)
  await dying.waitUntilSettled(
    theirs.approve(asked.toolCallId, { by: 'ada', ...(input && { input }) }).catch(() => undefined),
  )
  await dying.waitUntilSettled(theirs.result.catch(() => undefined))
  const set = stage({
    ledger,
    steps: [{ text: 'Paid.' }],
    tools: [pay()],
    clock: first.clock,
    random: seededRandom(3),
  })
  const run = set.runtime.resume(asked.runId)
  const again = (await set.waitUntilSettled(run.result)).pendingApprovals[0]!
  return { set, run, asked, again }
}

/** A handle that has shown the first question, and whose run another process drove into its crash meanwhile. */
async function staleHandle() {
  const ledger = memoryLedger()
  const first = stage({ ledger, steps, tools: [pay()] })
  const asked = (await first.play()).pendingApprovals[0]!
  const watching = stage({ ledger, steps, tools: [pay()], clock: first.clock, random: seededRandom(4) })
  const stale = watching.runtime.resume(asked.runId)
  await watching.waitUntilSettled(stale.result)
  const dying = stage({
    ...{ steps, tools: [pay()], clock: first.clock, random: seededRandom(2) },
    ledger: mortalLedger(ledger, { append: 2, stored: false }),
  })
  const theirs = dying.runtime.resume(asked.runId)
  await dying.waitUntilSettled(theirs.result)
  await dying.waitUntilSettled(theirs.approve(asked, { by: 'ada' }).catch(() => undefined))
  await dying.waitUntilSettled(theirs.result.catch(() => undefined))
  return { ledger, clock: first.clock, asked, stale }
}

describe('a decision that comes again', () => {
  it('decides nothing about the next start of the call', async () => {
    const { set, run, asked, again } = await inDoubt()
    expect([asked.attempt, again.attempt]).toEqual([1, 2])
    const { toolCallId, attempt, inputDigest } = asked
    expect(
      await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada', attempt, inputDigest })),
    ).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
    expect(ofType(await set.eventsOf(run), 'tool_started')).toHaveLength(1)
    expect(
      await set.waitUntilSettled(
        run.approve(toolCallId, { by: 'ada', attempt: 2, inputDigest: again.inputDigest }),
      ),
    ).toEqual({ accepted: true })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
  })

  it('is bound to the input that will run: that of the approver, once there is one', async () => {
    const { set, run, asked, again } = await inDoubt({ amount: 2 })
    expect(again.input).toEqual({ amount: 2 })
    expect(again.inputDigest).toBe(computeDigest({ amount: 2 }))
    const stale = { by: 'ada', attempt: 2, inputDigest: asked.inputDigest }
    expect(await set.waitUntilSettled(run.approve(asked.toolCallId, stale))).toMatchObject({
      accepted: false,
    })
    const { attempt, inputDigest } = again
    await set.waitUntilSettled(run.approve(asked.toolCallId, { by: 'ada', attempt, inputDigest }))
    await set.waitUntilSettled(run.result)
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

describe('a decision that names no start of the call', () => {
  it('is about what its handle has shown: a late duplicate of a stale handle decides nothing again', async () => {
    const { ledger, clock, asked, stale } = await staleHandle()
    const set = stage({ ledger, clock, steps: [{ text: 'Paid.' }], tools: [pay()], random: seededRandom(3) })
    const fresh = set.runtime.resume(asked.runId)
    const again = (await set.waitUntilSettled(fresh.result)).pendingApprovals[0]!
    expect([asked.attempt, again.attempt]).toEqual([1, 2])
    for (const decision of [
      stale.approve(asked, { by: 'ada' }),
      stale.approve(asked.toolCallId, { by: 'ada' }),
    ]) {
      const acknowledgement = await set.waitUntilSettled(decision)
      expect(acknowledgement).toMatchObject({ accepted: false, code: 'not_awaiting_approval' })
      expect(acknowledgement).toMatchObject({
        message: expect.stringContaining('Start 2 is asked about now') as string,
      })
    }
    expect(ofType(await set.eventsOf(asked.runId), 'approval_decided')).toHaveLength(1)
    expect(ofType(await set.eventsOf(asked.runId), 'tool_started')).toHaveLength(1)
  })

  it('answers the second question through the handle that has shown it', async () => {
    const { set, run, asked, again } = await inDoubt()
    expect(await set.waitUntilSettled(run.approve(asked, { by: 'ada' }))).toMatchObject({ accepted: false })
    expect(await set.waitUntilSettled(run.approve(asked.toolCallId, { by: 'ada' }))).toEqual({
      accepted: true,
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const decided = ofType(checkedRun(await set.eventsOf(run)), 'approval_decided')
    expect(decided.map(({ attempt, inputDigest }) => [attempt, inputDigest])).toEqual([
      [1, asked.inputDigest],
      [2, again.inputDigest],
    ])
  })

  it.each(['approve', 'deny'] as const)(
    'is about the first start where its handle has shown nothing (%s), and about another where it carries that one',
    async (verb) => {
      const { set, asked, again } = await inDoubt()
      const unseen = set.runtime.resume(asked.runId)
      const decide = (call: Parameters<typeof unseen.approve>[0]) =>
        set.waitUntilSettled(
          verb === 'approve'
            ? unseen.approve(call, { by: 'ada' })
            : unseen.deny(call, { by: 'ada', reason: 'it arrived' }),
        )
      expect(await decide(asked.toolCallId)).toMatchObject({ accepted: false, code: 'not_awaiting_approval' })
      expect(await decide({ ...again, attempt: 0 })).toMatchObject({ accepted: false, code: 'malformed' })
      expect(await decide(again)).toEqual({ accepted: true })
      expect(await set.waitUntilSettled(unseen.result)).toMatchObject({ reason: 'answered' })
    },
  )

  it('is about what the events of its handle have shown', async () => {
    const { set, asked } = await inDoubt()
    const watching = set.runtime.resume(asked.runId)
    const shown = new Promise<void>((resolve) => {
      watching.events$.subscribe((event) => {
        if (event.type === 'approval_requested' && event.attempt === 2) resolve()
      })
    })
    await set.waitUntilSettled(shown)
    expect(await set.waitUntilSettled(watching.approve(asked.toolCallId, { by: 'ada' }))).toEqual({
      accepted: true,
    })
  })
})
