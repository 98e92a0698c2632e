import {
  type CommandAcknowledgement,
  type ForkEdit,
  type Ledger,
  type LedgerConflictError,
  type RunResult,
  type RunState,
  type RuntimeEvent,
  joinText,
  agentTool,
  createRuntime,
  defineAgent,
  type Runtime,
} from '@tallystick/core'
import { evolve, toTranscript } from '@tallystick/core/machine'
import {
  checkTranscript,
  manualClock,
  mortalLedger,
  testTool,
  type ScriptedStep,
  type TestTool,
  scriptedModel,
  seededRandom,
  type ScriptedModel,
  type ScriptedReply,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { converse, newProcess, nextRequest, readable } from './conversation.ts'
import { checkedRun, ofType, stage, type Stage, type StageOptions, recorded } from './stage.ts'

// What users of agent runtimes have run into with approvals, lost sessions and subscribers; see cut-replies-and-stops.spec.ts.

const steps: readonly ScriptedStep[] = [
  { toolCalls: [{ name: 'pay', input: { usd: 5 } }] },
  { text: 'Paid.' },
]

/** A tool that asks a person, as each process has its own; `log` is the world outside, which they share. */
const payInto = (log: string[]): TestTool =>
  testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: ({ input }) => {
      log.push(`paid ${JSON.stringify(input['usd'])}`)
      return 'paid'
    },
  })

/** One more process on the same ledger, which plays the script from after the call. */
const another = (ledger: Ledger, log: string[], options: StageOptions = {}): Stage =>
  newProcess({ ledger, steps: steps.slice(1), tools: [payInto(log)], ...options })

/** A run that waits for a person, and the world that it would act on. */
async function waiting(): Promise<{ first: Stage; rest: RunResult; log: string[]; toolCallId: string }> {
  const log: string[] = []
  const first = newProcess({ steps, tools: [payInto(log)] })
  const rest = await converse(first)
  expect(rest).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
  return { first, rest, log, toolCallId: rest.pendingApprovals[0]!.toolCallId }
}

/** What the model would be shown of the results, with every law held against the run. */
function resultsIn(events: readonly RuntimeEvent[]): readonly string[] {
  const messages = toTranscript(checkedRun(events).reduce<RunState | undefined>(evolve, undefined)!)
  expect(checkTranscript(messages)).toEqual([])
  return messages.flatMap((message) =>
    message.role === 'tool'
      ? message.results.map(({ outcome, content }) => `${outcome}: ${joinText(content)}`)
      : [],
  )
}

/** What became of a decision, in one word. */
const fateOf = async (acknowledgement: Promise<CommandAcknowledgement>): Promise<string> =>
  await acknowledgement.then(
    (answer) => (answer.accepted ? 'accepted' : answer.code),
    (error: LedgerConflictError) => error.code,
  )

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve()
}

describe('one approval', () => {
  it('that is sent twice runs the tool once', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    const command = { type: 'approve' as const, toolCallId, by: 'ada' }
    for (const key of ['a', 'b']) await first.ledger.put(rest.runId, { key, command, at: first.clock.now() })
    const { runtime, waitUntilSettled: settle, eventsOf } = another(first.ledger, log, { clock: first.clock })
    expect(await settle(runtime.resume(rest.runId).result)).toMatchObject({
      reason: 'answered',
      toolCalls: 1,
    })
    expect(log).toEqual(['paid 5'])
    expect(resultsIn(await eventsOf(rest.runId))).toEqual(['success: paid'])
  })

  it('that is resumed twice, one after the other, runs the tool once', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    const run = first.runtime.resume(rest.runId)
    await first.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))
    const ended = await first.waitUntilSettled(run.result)
    const { runtime, waitUntilSettled: settle, model } = another(first.ledger, log, { clock: first.clock })
    expect(await settle(runtime.resume(rest.runId).result)).toEqual(ended)
    expect(log).toEqual(['paid 5'])
    expect(model.requests).toEqual([])
  })

  it('that two processes resume at once runs the tool once, however far the one is ahead of the other', async () => {
    const seen = new Set<string>()
    for (let ahead = 0; ahead < 240; ahead += effort({ quick: 12, thorough: 3 })) {
      const { first, rest, log, toolCallId } = await waiting()
      const command = { type: 'approve' as const, toolCallId, by: 'ada' }
      await first.ledger.put(rest.runId, { key: 'k', command, at: first.clock.now() })
      const [one, two] = [1, 2].map(() => another(first.ledger, log, { clock: first.clock })) as [
        Stage,
        Stage,
      ]
      const results: Promise<RunResult>[] = [one.runtime.resume(rest.runId).result]
      await turns(ahead)
      results.push(two.runtime.resume(rest.runId).result)
      const endings = await first.waitUntilSettled(Promise.allSettled(results))
      const events = await first.eventsOf(rest.runId)
      expect({ ahead, log }).toEqual({ ahead, log: ['paid 5'] })
      expect(ofType(events, 'tool_started')).toHaveLength(1)
      expect(ofType(events, 'approval_decided')).toHaveLength(1)
      expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
      resultsIn(events)
      const passed = endings.map((ending) =>
        ending.status === 'fulfilled' ? ending.value.text : (ending.reason as LedgerConflictError).name,
      )
      seen.add(passed.join(' and '))
    }
    // Whoever comes second follows the first, or finds the work done.
    expect(seen).toEqual(new Set(['Paid. and Paid.']))
  })

  it('that two processes each decide is decided once: the first is obeyed, and the other is refused', async () => {
    const passed = new Set<string>()
    const outcomes = new Set<string>()
    for (const second of ['approve', 'deny'] as const) {
      for (let ahead = 0; ahead < 240; ahead += effort({ quick: 12, thorough: 3 })) {
        const { first, rest, log, toolCallId } = await waiting()
        const one = another(first.ledger, log, { clock: first.clock }).runtime.resume(rest.runId)
        const fates = [fateOf(one.approve(toolCallId, { by: 'ada' }))]
        await turns(ahead)
        const two = another(first.ledger, log, { clock: first.clock }).runtime.resume(rest.runId)
        const decision = second === 'approve' ? { by: 'bob' } : { by: 'bob', reason: 'too dear' }
        fates.push(fateOf(two[second](toolCallId, decision as { by: string; reason: string })))
        passed.add((await first.waitUntilSettled(Promise.all(fates))).join(', '))
        await first.waitUntilSettled(Promise.allSettled([one.result, two.result]))
        const events = await first.eventsOf(rest.runId)
        expect(ofType(events, 'approval_decided')).toMatchObject([{ by: 'ada', approved: true }])
        expect({ ahead, log }).toEqual({ ahead, log: ['paid 5'] })
        for (const result of resultsIn(events)) outcomes.add(result.split(':')[0]!)
      }
    }
    // No process is relieved while its tool runs: the second leaves its decision to the first.
    expect(outcomes).toEqual(new Set(['success']))
    expect([...passed].toSorted()).toEqual(['accepted, not_awaiting_approval'])
  })

  it('that is given again after the end, or twice in one process, is refused, and nothing runs', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    const handles = [first.runtime.resume(rest.runId), first.runtime.resume(rest.runId)]
    const acknowledgements = handles.map((run) => fateOf(run.approve(toolCallId, { by: 'ada' })))
    expect(await first.waitUntilSettled(Promise.all(acknowledgements))).toEqual([
      'accepted',
      'not_awaiting_approval',
    ])
    await first.waitUntilSettled(Promise.all(handles.map((run) => run.result)))
    const later = another(first.ledger, log, { clock: first.clock })
    const again = later.runtime.resume(rest.runId).approve(toolCallId, { by: 'ada' })
    expect(await later.waitUntilSettled(fateOf(again))).toBe('not_awaiting_approval')
    expect([log, later.model.requests]).toEqual([['paid 5'], []])
  })

  it('is of one call in one run: a conversation that is sent on again runs nothing again, and asks anew', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    const run = first.runtime.resume(rest.runId)
    await first.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))
    await first.waitUntilSettled(run.result)
    expect(readable(await nextRequest(first))).toContain('pay success: paid')
    const next = another(first.ledger, log, { clock: first.clock, steps })
    const again = await converse(next, 'The same again.')
    expect(again).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
    const handle = next.runtime.resume(again.runId)
    expect(await next.waitUntilSettled(fateOf(handle.approve(toolCallId, { by: 'ada' })))).toBe(
      'unknown_call',
    )
    expect(log).toEqual(['paid 5'])
  })

  it('that a branch begins before stays with its run: the branch runs nothing, the run continues', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    const {
      runtime,
      agent,
      model,
      waitUntilSettled: settle,
    } = another(first.ledger, log, { clock: first.clock })
    const from = { runId: rest.runId, atSeq: rest.seq }
    const branch = runtime.run(agent, 'Forget it.', { sessionId: 'branch', from })
    expect(await settle(branch.result)).toMatchObject({ reason: 'answered', toolCalls: 0 })
    expect(readable(model.requests[0]!.messages)).toEqual([
      ...['user: Go.', 'asks pay', 'pay skipped: This call was not run.', 'user: Forget it.'],
    ])
    expect(await settle(fateOf(branch.approve(toolCallId, { by: 'ada' })))).toBe('run_finished')
    expect(log).toEqual([])
    const run = another(first.ledger, log, { clock: first.clock }).runtime.resume(rest.runId)
    expect(await settle(fateOf(run.approve(toolCallId, { by: 'ada' })))).toBe('accepted')
    expect(await settle(run.result)).toMatchObject({ reason: 'answered' })
    expect(log).toEqual(['paid 5'])
  })

  it('given a time to decide, when a fork shares the question long after, then it asks anew with a time of its own', async () => {
    const limits = { maxApprovalMs: 60_000 }
    const log: string[] = []
    const first = newProcess({ steps, tools: [payInto(log)], limits })
    const source = await converse(first)
    const [asked] = ofType(await first.eventsOf(source.runId), 'approval_requested')
    const atSeq = asked!.seq
    const late = asked!.at + 3_600_000
    const forkLate = async (edit?: ForkEdit) => {
      const set = another(first.ledger, log, { clock: manualClock(late), limits })
      const run = set.runtime.fork(source.runId, { atSeq, edit })
      return { set, run, rest: await set.waitUntilSettled(run.result) }
    }

    const { set, run, rest } = await forkLate()
    const [{ toolCallId } = { toolCallId: '' }] = rest.pendingApprovals
    expect(rest).toMatchObject({ status: 'suspended', pendingApprovals: [{ name: 'pay' }] })
    const [, anew, ...more] = ofType(await set.eventsOf(run), 'approval_requested')
    expect([anew?.at, anew?.expiresAt, more]).toEqual([late, late + 60_000, []])
    await set.waitUntilSettled(run.approve(toolCallId, { by: 'ada' }))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    expect(log).toEqual(['paid 5'])

    const forgotten = await forkLate()
    forgotten.set.clock.advance(60_001)
    const resumed = forgotten.set.runtime.resume(forgotten.run.id)
    await forgotten.set.waitUntilSettled(resumed.result)
    expect(resultsIn(await forgotten.set.eventsOf(resumed))).toEqual([
      expect.stringContaining('denied: expiry denied this call'),
    ])

    const approvals = [{ toolCallId: asked!.toolCallId, by: 'bob', approved: true as const }]
    const edited = await forkLate({ approvals })
    expect(ofType(await edited.set.eventsOf(edited.run), 'approval_requested')).toHaveLength(1)
    expect(edited.rest).toMatchObject({ reason: 'answered' })
    expect(log).toEqual(['paid 5', 'paid 5'])
  })

  it('that was recorded holds in a new process with nothing in memory', async () => {
    const { first, rest, log, toolCallId } = await waiting()
    // The process that records the decision dies with the very append that stores it.
    const dying = another(mortalLedger(first.ledger, { append: 2, stored: true }), log, {
      clock: first.clock,
    })
    const run = dying.runtime.resume(rest.runId)
    void run.approve(toolCallId, { by: 'ada' }).catch(() => {})
    await expect(dying.waitUntilSettled(run.result)).rejects.toThrow('The process died here.')
    const decided = ofType(await first.eventsOf(rest.runId), 'approval_decided')
    expect(decided).toMatchObject([{ approved: true, by: 'ada' }])
    const { runtime, waitUntilSettled: settle } = another(first.ledger, log, { clock: first.clock })
    expect(await settle(runtime.resume(rest.runId).result)).toMatchObject({
      reason: 'answered',
      toolCalls: 1,
    })
    expect(log).toEqual(['paid 5'])
  })
})

describe('an approved tool that has run while its result could not be stored', () => {
  it('is not run again wherever the process died, and the conversation continues with what is known', async () => {
    const outcomes = new Set<string>()
    let died = true
    for (let append = 1; died; append++) {
      for (const stored of [true, false]) {
        const { first, rest, log, toolCallId } = await waiting()
        const view = mortalLedger(first.ledger, { append, stored })
        const dying = another(view, log, { clock: first.clock })
        const run = dying.runtime.resume(rest.runId)
        void run.approve(toolCallId, { by: 'ada' }).catch(() => {})
        await dying.waitUntilSettled(Promise.allSettled([run.result]))
        died = view.dead
        const { runtime, waitUntilSettled: settle } = another(first.ledger, log, { clock: first.clock })
        let end = await settle(runtime.resume(rest.runId).result)
        // The decision itself may have died with the process: then the person is asked as before.
        if (end.status === 'suspended') {
          const again = runtime.resume(rest.runId)
          await settle(again.approve(toolCallId, { by: 'ada' }))
          end = await settle(again.result)
        }
        expect({ append, stored, end: end.reason }).toEqual({ append, stored, end: 'answered' })
        const results = resultsIn(await first.eventsOf(rest.runId))
        expect(results).toHaveLength(1)
        const outcome = results[0]!.split(':')[0]!
        outcomes.add(`${outcome}, paid ${log.length} times`)
        expect(outcome === 'success' ? [1] : [0, 1]).toContain(log.length)
      }
    }
    expect(outcomes).toContain('success, paid 1 times')
    expect(outcomes).toContain('interrupted, paid 1 times')
  })
})

describe('a subscriber that throws', () => {
  it('when a tool ends loses no result: the next turn has it, and the error is reported', async () => {
    const look = testTool({ name: 'look', run: () => 'seen' })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [look],
    })
    const run = set.start()
    run.events$.subscribe((event) => {
      if (event.type === 'tool_result') throw new Error('the interface is broken')
    })
    const passed: string[] = []
    run.events$.subscribe(({ type }) => passed.push(type))
    expect(await set.waitUntilSettled(run.result)).toMatchObject({
      reason: 'answered',
      turns: 2,
      toolCalls: 1,
    })
    expect(resultsIn(await set.eventsOf(run))).toEqual(['success: seen'])
    expect(passed.at(-1)).toBe('run_finished')
    expect(set.reported).toMatchObject([{ message: 'the interface is broken' }])
  })
})

// What users of agent runtimes have run into with approvals, one level down: the call belongs to an agent that is a tool of
// another.

/** Asks once, and answers when it has the result, in whichever process. */
const askingOnce = (call: ScriptedReply, answer: string): ScriptedModel =>
  scriptedModel(
    Array.from(
      { length: 9 },
      () =>
        ({ messages }) =>
          messages.length === 1 ? call : { text: answer },
    ),
  )

const asks = (name: string, input: { readonly [key: string]: string }): ScriptedReply => ({
  toolCalls: [{ name, input }],
})

let processes = 0

/** A process that knows a clerk, who is a tool of a boss and pays only when a person says so. `log` is the world outside. */
function office({ clock }: Stage, ledger: Ledger, log: string[]): { runtime: Runtime; start: () => string } {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: () => `payment ${log.push('paid')}`,
  })
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Pays bills.', instructions: 'Pay.', tools: [pay] },
    model: askingOnce(asks('pay', {}), 'Paid.'),
  })
  const boss = defineAgent({
    ...{ name: 'boss', instructions: 'Delegate.', tools: [agentTool(clerk)] },
    model: askingOnce(asks('clerk', { task: 'Pay the bill.' }), 'The bill is paid.'),
  })
  const host = { clock, random: seededRandom(++processes), report: () => {} }
  const runtime = createRuntime({ ledger, agents: [boss], host })
  return { runtime, start: () => runtime.run(boss, 'Pay the bill.').id }
}

it('one approval of a call of a child run that two processes resume runs the tool once, however far the one is ahead', async () => {
  const outcomes = new Set<string>()
  for (let ahead = 0; ahead < 100; ahead += effort({ quick: 5, thorough: 1 })) {
    const log: string[] = []
    const set = stage()
    const first = office(set, set.ledger, log)
    const runId = first.start()
    const rest = await set.waitUntilSettled(first.runtime.resume(runId).result)
    const { toolCallId, runId: childId } = rest.pendingApprovals[0]!
    const one = office(set, set.ledger, log).runtime.resume(runId)
    const decisions: Promise<unknown>[] = [one.approve(toolCallId, { by: 'ada' })]
    for (let turn = 0; turn < ahead; turn++) await Promise.resolve()
    const two = office(set, set.ledger, log).runtime.resume(runId)
    decisions.push(two.approve(toolCallId, { by: 'bob' }))
    await set.waitUntilSettled(Promise.allSettled([...decisions, one.result, two.result]))
    // Each of them may have taken the run from the other and stopped; the process that resumes it brings it to its end.
    for (let again = 0; again < 3; again++) {
      await set.waitUntilSettled(
        Promise.allSettled([office(set, set.ledger, log).runtime.resume(runId).result]),
      )
    }
    expect({ ahead, log }).toEqual({ ahead, log: ['paid'] })
    const above = checkedRun(await recorded(set.ledger, runId))
    const below = checkedRun(await recorded(set.ledger, childId))
    expect(ofType(below, 'approval_decided')).toHaveLength(1)
    expect(ofType(below, 'tool_started')).toHaveLength(1)
    expect(ofType(above, 'tool_started')).toHaveLength(1)
    expect([above, below].map((events) => events.at(-1))).toMatchObject([
      { type: 'run_finished', reason: 'answered' },
      { type: 'run_finished', reason: 'answered' },
    ])
    for (const { outcome } of ofType(below, 'tool_result')) outcomes.add(outcome)
    expect(ofType(above, 'tool_result')).toMatchObject([{ outcome: 'success', child: { runId: childId } }])
  }
  expect(outcomes).toEqual(new Set(['success']))
})
