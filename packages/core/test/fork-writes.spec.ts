import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent, LawBrokenError, type RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { scriptedModel, seededRandom, testTool, type ScriptedStep } from '@tallystick/testkit'
import { checkedRun, ofType, stage as stageOf, type StageOptions } from './stage.ts'

const look = { name: 'look', input: { at: 'stock' } }
const pay = { name: 'pay', input: { amount: 5 } }
const script: readonly ScriptedStep[] = [{ toolCalls: [look] }, { toolCalls: [pay] }, { text: 'Done.' }]

function shop(options: StageOptions = {}) {
  let stock = 5
  const tools = [
    testTool({ name: 'look', run: () => `${stock--} left` }),
    testTool({ name: 'pay', effect: 'write', run: () => 'paid' }),
  ]
  const stage = stageOf({ steps: script, tools, random: seededRandom(1), ...options })
  return { ...stage, tools, paid: () => tools[1]?.runs.map(({ input }) => input) }
}

/** Runs of one ledger are to have ids of their own. */
let seeds = 1

async function recorded(steps: readonly ScriptedStep[] = script) {
  const set = shop({ steps })
  const { runId } = await set.play('Buy one.')
  const events = await set.eventsOf(runId)
  const behind = (type: RuntimeEvent['type'], nth = 1): number =>
    events.filter((event) => event.type === type)[nth - 1]!.seq
  const fresh = (next: readonly ScriptedStep[]) =>
    shop({ ledger: set.ledger, clock: set.clock, steps: next, random: seededRandom(++seeds) })
  return { ...set, runId, events, behind, fresh }
}

const another: readonly ScriptedStep[] = [
  { toolCalls: [{ name: 'pay', input: { amount: 7 } }] },
  { text: 'Ok.' },
]

describe('a write in a fork', () => {
  it('that no record answers waits for an approval, and is performed when it was given', async () => {
    const { runId, behind, fresh } = await recorded()
    const set = fresh(another)
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected') })
    const asked = await set.waitUntilSettled(fork.result)
    expect(asked).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay', input: { amount: 7 } }],
    })
    expect(set.paid()).toEqual([])
    const [request] = ofType(await set.eventsOf(fork), 'approval_requested')
    expect(request?.reason).toContain('performed for real, under a new idempotency key')
    await fork.approve(asked.pendingApprovals[0]!.toolCallId, { by: 'ada' })
    expect(await set.waitUntilSettled(set.runtime.resume(fork.id).result)).toMatchObject({
      reason: 'answered',
    })
    expect(set.paid()).toEqual([{ amount: 7 }])
    checkedRun(await set.eventsOf(fork))
  })

  it('is never performed unasked, wherever the fork begins, and also where the same is asked for again', async () => {
    const { runId, events, fresh } = await recorded()
    for (const { seq } of events.slice(1, -1)) {
      for (const writes of ['ask', 'stub'] as const) {
        const set = fresh([
          { toolCalls: [pay, { name: 'pay', input: { amount: 7 } }] },
          { toolCalls: [pay] },
          { text: 'Ok.' },
        ])
        const fork = set.runtime.fork(runId, { atSeq: seq, writes })
        const { status } = await set.waitUntilSettled(fork.result)
        expect({ seq, writes, paid: set.paid() }).toEqual({ seq, writes, paid: [] })
        // A fork that asks no person waits for none.
        expect({ seq, rests: writes === 'ask' || status === 'done' }).toEqual({ seq, rests: true })
        checkedRun(await set.eventsOf(fork))
      }
    }
  })

  it('that is stubbed tells the model that nothing was changed, approvals of the fork notwithstanding', async () => {
    const { runId, behind, fresh } = await recorded()
    const set = fresh(another)
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), writes: 'stub' })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ status: 'done', reason: 'answered' })
    expect(ofType(await set.eventsOf(fork), 'tool_result').at(-1)).toMatchObject({
      ...{
        name: 'pay',
        outcome: 'skipped',
        content: [{ text: expect.stringContaining('nothing was changed') }],
      },
    })
    expect(
      ofType(await set.eventsOf(fork), 'tool_started').filter(
        ({ seq }) => seq > behind('tool_results_injected'),
      ),
    ).toEqual([])
    expect(set.paid()).toEqual([])
  })

  it('is performed under a key of its own where the fork was let run its writes', async () => {
    const { runId, behind, fresh } = await recorded()
    const set = fresh(another)
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), writes: 'run' })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ reason: 'answered' })
    expect(set.paid()).toEqual([{ amount: 7 }])
  })

  it('is answered by the record without being asked about, also beside a read that goes another way', async () => {
    const { runId, behind, fresh } = await recorded()
    const set = fresh([{ toolCalls: [{ name: 'look', input: { at: 'price' } }, pay] }, { text: 'Ok.' }])
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected') })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ status: 'done', reason: 'answered' })
    expect(set.paid()).toEqual([])
    const results = ofType(checkedRun(await set.eventsOf(fork)), 'tool_result')
    const paid = results.find(({ name }) => name === 'pay')
    expect(paid).toMatchObject({ name: 'pay', reused: expect.stringMatching(/^call_/) })
  })

  it('stays what it is in another process, since the first event records it', async () => {
    const { runId, behind, fresh } = await recorded()
    const first = fresh(another)
    const fork = first.runtime.fork(runId, { atSeq: behind('input_received'), writes: 'stub' })
    await first.runtime.drain(0)
    const second = fresh(another)
    await second.waitUntilSettled(second.runtime.resume(fork.id).result)
    expect([first.paid(), second.paid()]).toEqual([[], []])
    const [started] = ofType(await second.eventsOf(fork), 'run_started')
    expect(started?.parent).toMatchObject({ relation: 'fork', writes: 'stub' })
  })

  it('is held back in the child runs of the fork as well', async () => {
    const tools = [testTool({ name: 'pay', effect: 'write', run: () => 'paid' })]
    const clerk = defineAgent({
      ...{ name: 'clerk', instructions: 'Pay.', tools },
      model: scriptedModel([
        { toolCalls: [pay] },
        { text: 'Paid.' },
        { toolCalls: [{ name: 'pay', input: { amount: 9 } }] },
        { text: 'Paid.' },
      ]),
    })
    const set = stageOf({
      steps: [
        { toolCalls: [{ name: 'clerk', input: { task: 'Pay 5.' } }] },
        { text: 'Done.' },
        { toolCalls: [{ name: 'clerk', input: { task: 'Pay 9.' } }] },
        { text: 'Ok.' },
      ],
      tools: [agentTool(clerk, { effect: 'read', description: 'Pays.' })],
      random: seededRandom(1),
    })
    const { runId } = await set.play('Buy.')
    expect(tools[0]?.runs).toHaveLength(1)
    const fork = set.runtime.fork(runId, { atSeq: 2 })
    const { pendingApprovals, status } = await set.waitUntilSettled(fork.result)
    expect({ status, runs: tools[0]?.runs.length }).toEqual({ status: 'suspended', runs: 1 })
    expect(pendingApprovals).toMatchObject([{ name: 'pay', input: { amount: 9 } }])
    expect(pendingApprovals[0]?.runId).not.toBe(fork.id)
  })

  it.each(['read', 'write'] as const)(
    'that a child run did is answered by the record wherever the fork begins (%s)',
    async (effect) => {
      const clerk = defineAgent({
        name: 'clerk',
        instructions: 'Help.',
        model: scriptedModel([{ text: 'Helped.' }, { text: 'Helped.' }]),
      })
      const call = { name: 'clerk', input: { task: 'Help.' } }
      const tools = [agentTool(clerk, { effect, description: 'Helps.' })]
      const first = stageOf({
        steps: [{ toolCalls: [call, call] }, { text: 'Done.' }],
        tools,
        random: seededRandom(1),
      })
      const { runId } = await first.play('Go.')
      const collected = ofType(await first.eventsOf(runId), 'tool_requests_collected')[0]!.seq
      for (const writes of ['ask', 'stub', 'run'] as const) {
        const set = stageOf({
          ledger: first.ledger,
          clock: first.clock,
          tools,
          steps: [{ text: 'Ok.' }],
          random: seededRandom(++seeds),
        })
        const fork = set.runtime.fork(runId, { atSeq: collected, writes })
        await set.waitUntilSettled(fork.result)
        const starts = ofType(checkedRun(await set.eventsOf(fork)), 'tool_started')
        expect(starts.map(({ child, grant }) => [child === undefined, grant === undefined])).toEqual([
          [false, false],
          [false, false],
        ])
      }
    },
  )

  it('that was started without being let run breaks a law', async () => {
    const { runId, behind, fresh } = await recorded()
    const set = fresh(another)
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), writes: 'run' })
    await set.waitUntilSettled(fork.result)
    const forged = (await set.eventsOf(fork)).map((event): RuntimeEvent => {
      if (event.type !== 'run_started' || !event.parent) return event
      return { ...event, parent: { ...event.parent, writes: 'ask' } }
    })
    expect(() => auditAll(forged)).toThrow(LawBrokenError)
  })
})

describe('an approval of the run that a fork shares its events with', () => {
  /** A run whose read and write were approved, and are at work. */
  async function approvedRun() {
    const forever = (): Promise<string> => new Promise(() => {})
    const ask = () => ({ kind: 'ask' }) as const
    const toolsOf = (run: () => Promise<string> | string) => [
      testTool({ name: 'look', check: ask, run }),
      testTool({ name: 'pay', effect: 'write', recovery: 'rerun', check: ask, run }),
    ]
    const steps: readonly ScriptedStep[] = [{ toolCalls: [look, pay] }]
    const set = stageOf({ steps, tools: toolsOf(forever), random: seededRandom(1) })
    const run = set.start()
    const { pendingApprovals } = await set.waitUntilSettled(run.result)
    for (const { toolCallId } of pendingApprovals) await run.approve(toolCallId, { by: 'boss' })
    set.clock.advance(0)
    const events = await set.eventsOf(run)
    expect(ofType(events, 'tool_started')).toHaveLength(2)
    const fork = (atSeq: number, writes: 'ask' | 'run' | 'stub') => {
      const tools = toolsOf(() => 'done')
      const other = stageOf({
        ...{ ledger: set.ledger, clock: set.clock, steps: [{ text: 'Ok.' }], tools },
        random: seededRandom(++seeds),
      })
      const forked = other.runtime.fork(run.id, { atSeq, writes })
      return { ...other, forked, ran: () => tools.map(({ runs }) => runs.length) }
    }
    const decided = ofType(events, 'approval_decided').map(({ seq }) => seq)
    return { events, decided, fork }
  }

  it('lets nothing run in the fork, wherever it begins and whatever becomes of its writes', async () => {
    const { events, decided, fork } = await approvedRun()
    for (const { seq } of events.filter((event) => event.seq >= decided[0]!)) {
      for (const writes of ['ask', 'run', 'stub'] as const) {
        const set = fork(seq, writes)
        const { status, pendingApprovals } = await set.waitUntilSettled(set.forked.result)
        expect({ seq, writes, ran: set.ran(), status }).toEqual({
          seq,
          writes,
          ran: [0, 0],
          status: 'suspended',
        })
        expect(pendingApprovals[0]?.reason).toMatch(/This run is a fork|It was started before/)
        checkedRun(await set.eventsOf(set.forked))
      }
    }
  })

  it('is asked for anew, and the answer allows one execution', async () => {
    const { decided, fork } = await approvedRun()
    const set = fork(decided[1]!, 'run')
    const { pendingApprovals } = await set.waitUntilSettled(set.forked.result)
    expect(pendingApprovals.map(({ name }) => name)).toEqual(['look', 'pay'])
    for (const { toolCallId } of pendingApprovals) await set.forked.approve(toolCallId, { by: 'boss' })
    expect(await set.waitUntilSettled(set.runtime.resume(set.forked.id).result)).toMatchObject({
      status: 'done',
    })
    expect(set.ran()).toEqual([1, 1])
    checkedRun(await set.eventsOf(set.forked))
  })

  it('breaks a law where a call was started on it', async () => {
    const { decided, fork } = await approvedRun()
    const set = fork(decided[1]!, 'run')
    const { pendingApprovals } = await set.waitUntilSettled(set.forked.result)
    for (const { toolCallId } of pendingApprovals) await set.forked.approve(toolCallId, { by: 'boss' })
    await set.waitUntilSettled(set.runtime.resume(set.forked.id).result)
    const events = await set.eventsOf(set.forked)
    const last = ofType(events, 'approval_decided').at(-1)!
    // The fork's own approvals, as if they were among the shared events.
    const forged = events.map((event): RuntimeEvent => {
      if (event.type === 'approval_decided') return { ...event, elsewhere: true }
      if (event.type !== 'run_started' || !event.parent) return event
      return { ...event, parent: { ...event.parent, seq: last.seq } }
    })
    expect(() => auditAll(forged)).toThrow('starts on an approval')
    const claimed = events.map((event) => (event.seq === last.seq ? { ...event, elsewhere: true } : event))
    expect(() => auditAll(claimed as readonly RuntimeEvent[])).toThrow('Law 13')
  })
})

describe('a recorded result', () => {
  const again: readonly ScriptedStep[] = [{ toolCalls: [look] }, { text: 'Ok.' }]

  it('answers no call whose result was edited, and no call like it', async () => {
    const { runId, events, behind, fresh } = await recorded([
      { toolCalls: [look] },
      { toolCalls: [look] },
      { text: 'Done.' },
    ])
    const set = fresh(again)
    const { toolCallId } = ofType(events, 'tool_started')[0]!
    const edit = { results: [{ toolCallId, content: '0 left' }] }
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_started'), edit })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ reason: 'answered' })
    const results = ofType(checkedRun(await set.eventsOf(fork)), 'tool_result')
    expect(results.map(({ content: [part], reused }) => [part, reused])).toEqual([
      [{ type: 'text', text: '0 left' }, undefined],
      // What the tool says today, and not what it said then.
      [{ type: 'text', text: '5 left' }, undefined],
    ])
    expect(set.tools[0]?.runs).toHaveLength(1)
  })
})
