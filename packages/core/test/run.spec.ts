import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type RuntimeEvent,
  ConfigurationError,
  type Ledger,
  RunNotFoundError,
} from '@tallystick/core'
import { decide } from '@tallystick/core/machine'
import type { Command, Fact } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  sampleFacts,
  given,
  sampleCallId,
  sampleRunId,
  seededRandom,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import type { ParentRef } from '../src/events/event.ts'
import { toRunTimes } from '../src/machine/state.ts'
import { refuseAtEnd, refuseByDrain, refuseUnknownCall } from '../src/runtime/commands.ts'
import { createRunIdMaker } from '../src/runtime/host.ts'
import { requireSameRun } from '../src/runtime/start-run.ts'
import { type RunId, extractTime } from '../src/values/ids.ts'
import { recorded, stage, checkedRun, ofType } from './stage.ts'

async function eventsOf(run: AsyncIterable<RuntimeEvent>): Promise<RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of run) events.push(event)
  return events
}

describe('a run', () => {
  it('answers, and its ledger tells the whole way in order', async () => {
    const clock = manualClock()
    const model = scriptedModel([
      { text: 'Let me look.', toolCalls: [{ id: 'x', name: 'look', input: { at: 'sky' } }] },
      { text: 'It is blue.', usage: { inputTokens: 10, outputTokens: 3 } },
    ])
    const look = testTool({ name: 'look', run: ({ input }) => `${JSON.stringify(input['at'])} is blue` })
    const agent = defineAgent({ name: 'seer', instructions: 'Look.', model, tools: [look] })
    const runtime = createRuntime({
      ledger: memoryLedger(),
      agents: [agent],
      host: { clock, random: () => 0.5 },
    })
    const run = runtime.run(agent, 'What colour is the sky?')
    const result = await waitUntilSettled(clock, run.result)
    expect(result).toMatchObject({
      status: 'done',
      reason: 'answered',
      text: 'It is blue.',
      turns: 2,
      toolCalls: 1,
    })
    const events = await waitUntilSettled(clock, eventsOf(run))
    expect(events.map(({ type }) => type).filter((type) => !type.endsWith('delta'))).toEqual([
      'run_started',
      'input_received',
      'model_call_started',
      'assistant_started',
      'tool_request_ready',
      'assistant_message_finished',
      'tool_requests_collected',
      'tool_started',
      'tool_result',
      'tool_results_injected',
      'model_call_started',
      'assistant_started',
      'usage_updated',
      'assistant_message_finished',
      'run_finished',
    ])
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [{ name: 'look', outcome: 'success', content: [{ type: 'text', text: '"sky" is blue' }] }],
    })
  })

  it('suspends for an approval and continues by the same handle', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }])
    const pay = testTool({
      name: 'pay',
      effect: 'write',
      check: () => ({ kind: 'ask', reason: 'money' }),
      run: () => 'ok',
    })
    const agent = defineAgent({ name: 'payer', instructions: '', model, tools: [pay] })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Pay.')
    const rest = await waitUntilSettled(clock, run.result)
    expect(rest).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay', input: { usd: 5 }, reason: 'money' }],
    })
    expect(pay.runs).toHaveLength(0)
    const acknowledgement = run.approve(rest.pendingApprovals[0]?.toolCallId ?? '', { by: 'ann' })
    const result = await waitUntilSettled(clock, run.result)
    expect(await acknowledgement).toEqual({ accepted: true })
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Paid.' })
    expect(pay.runs).toHaveLength(1)
  })
})

const at = 1_760_000_000_123
const runId = createRunIdMaker({ clock: manualClock(at), random: () => 0.5 })()
const parent = (relation: ParentRef['relation']): ParentRef => ({ runId, seq: 2, relation })

describe('the times of a run', () => {
  it.each([
    ['a run', { startedAt: 5, at: 9 }, { startedAt: 5, lastAt: 9 }],
    [
      'a run that continues another',
      { startedAt: 5, at: 9, parent: parent('session') },
      { startedAt: 5, lastAt: 9 },
    ],
    ['a fork', { startedAt: 5, at: at + 9, parent: parent('fork') }, { startedAt: at, lastAt: at + 9 }],
    [
      'a fork that was not driven',
      { startedAt: 5, at: 9, parent: parent('fork') },
      { startedAt: at, lastAt: at },
    ],
    [
      'a fork whose clock was behind that of the other run',
      { startedAt: at + 5, at: at + 9, parent: parent('fork') },
      { startedAt: at + 5, lastAt: at + 9 },
    ],
  ])('of %s', (_what, facts, times) => {
    expect(toRunTimes({ runId, ...facts })).toEqual(times)
  })
})

describe('the time that a run id tells', () => {
  it('is that at which it was made', () => {
    expect(extractTime(runId)).toBe(at)
    expect(extractTime(runId.replace('-7', '-8') as RunId)).toBeUndefined()
  })
})

// The turns of a run as its handle tells them, and how a model failed as its result does.

it('a run tells its turns: agent, model, attempts, calls, usage, cost, time and handoff', async () => {
  const clock = manualClock()
  const ledger = memoryLedger()
  const look = testTool({ name: 'look', run: () => 'seen' })
  const usage = { inputTokens: 10, outputTokens: 1 }
  const model = scriptedModel([
    { fail: 'overloaded', usage },
    { toolCalls: [{ name: 'transfer_to_billing', input: {} }], usage },
    { text: 'Looking.', toolCalls: [{ name: 'look', input: {} }], usage },
    { text: 'Done.', usage },
  ])
  const billing = defineAgent({ name: 'billing', instructions: 'Bill.', model, tools: [look] })
  const desk = defineAgent({ name: 'desk', instructions: 'Greet.', model, handoffs: [billing] })
  const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 1 } }
  const runtime = createRuntime({ ledger, prices, host: { clock, random: () => 0.5 } })
  const run = runtime.run(desk, 'Go.')
  const result = await waitUntilSettled(clock, run.result)
  const steps = await run.steps()
  expect(steps).toMatchObject([
    { turn: 1, agent: 'desk', attempts: 2, handedTo: 'billing', usage: { inputTokens: 20, outputTokens: 2 } },
    { turn: 2, agent: 'billing', attempts: 1, text: 'Looking.', usage },
    { turn: 3, agent: 'billing', attempts: 1, text: 'Done.', calls: [], usage },
  ])
  expect(steps.map(({ calls }) => calls.map(({ name, outcome }) => `${name} ${outcome}`))).toEqual([
    ['transfer_to_billing success'],
    ['look success'],
    [],
  ])
  expect(steps.some((step) => 'failure' in step)).toBe(false)
  const cost = steps.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0)
  expect(cost).toBeCloseTo(result.costUsd ?? -1, 12)
  const events = await recorded(ledger, run.id)
  const [first] = steps
  expect(first?.startedAt).toBe(events.find(({ type }) => type === 'model_call_started')?.at)
  expect(first?.endedAt).toBe(events.find(({ type }) => type === 'agent_handed_off')?.at)
  expect(first!.endedAt).toBeGreaterThan(first!.startedAt)
})

it('a result names the failure that ended the run, wherever it is read', async () => {
  const set = stage({ steps: [{ fail: 'authentication' }] })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  const failure = { class: 'authentication', retryable: false, provider: 'scripted', modelId: 'scripted-1' }
  expect(result).toMatchObject({ reason: 'model_failed', failure })
  const { ledger, clock, agent } = set
  const other = createRuntime({ ledger, agents: [agent], host: { clock } })
  expect(await set.waitUntilSettled(other.resume(run.id).result)).toMatchObject({ failure })
  expect(await run.steps()).toMatchObject([{ text: '', attempts: 1, failure: { class: 'authentication' } }])
})

it('a run that recovered from a failure has none', async () => {
  const set = stage({ steps: [{ fail: 'overloaded' }, { text: 'Done.' }] })
  expect(await set.play()).not.toHaveProperty('failure')
})

describe('refusals', () => {
  const runId = sampleRunId(1)
  const facts = sampleFacts(runId)
  const toolCallId = sampleCallId(runId)
  const { parent: _parent, ...start } = facts.run_started
  const message = { role: 'user', parts: [{ type: 'text', text: 'Go.' }] } as const
  const begun: readonly Fact[] = [start, facts.input_received]
  const cancelled: readonly Fact[] = [...begun, { ...facts.cancel_requested, turn: 0 }]
  const ended: readonly Fact[] = [...begun, { ...facts.run_finished, turn: 0 }]

  /** The message with which a command is refused. */
  function refusalOf(page: readonly Fact[], command: Command): string {
    const { state } = given(page)
    const decision = decide(state, command, { at: state?.at ?? 0, random: 0 })
    return 'refused' in decision ? decision.refused.message : 'not refused'
  }

  const step =
    /(?:\. |; )(show|Show|Start|Wait|Give|Raise|Resume|Look|To continue, start|What is not set needs no raise|Send the command)\b/

  it.each<readonly [string, readonly Fact[], Command]>([
    ['a run that is done', ended, { type: 'cancel' }],
    ['a second cancel', cancelled, { type: 'cancel' }],
    ['input during a cancel', cancelled, { type: 'steer', message, receipt: 'r' }],
    ['a limit that is not set', begun, { type: 'raise_limit', limit: 'maxTokens', max: 5, by: 'ann' }],
    ['a decision about no call', begun, { type: 'approve', toolCallId, by: 'ann' }],
    ['a settlement of no call', begun, { type: 'settle', toolCallId, outcome: 'success', content: [] }],
  ] as never)('the refusal of %s says what to do next', (_what, page, command) => {
    expect(refusalOf(page, command)).toMatch(step)
  })

  it('and so do the refusals of a handle', () => {
    for (const { message: said } of [refuseAtEnd(runId), refuseByDrain(runId), refuseUnknownCall(runId)])
      expect(said).toMatch(/\. To continue, start|\. Send|; show the run/)
  })
})

const said = (text: string) =>
  ({ agent: 'agent', sessionId: 'chat', message: { role: 'user', parts: [{ type: 'text', text }] } }) as const

describe('a run that an idempotency key has begun before', () => {
  it('is compared by how it began, however long it is, and where its session has an edited past', async () => {
    const kept = memoryLedger()
    const set = stage({ ledger: kept, steps: [{ text: 'One.' }, { text: 'Two.' }] })
    const session = set.runtime.session('chat')
    await set.waitUntilSettled((await session.run(set.agent, 'First.')).result)
    const run = await session.run(set.agent, 'Second.')
    await set.waitUntilSettled(run.result)
    const read: number[] = []
    const ledger: Ledger = {
      ...kept,
      async *read(...asked) {
        for await (const event of kept.read(...asked)) {
          read.push(event.seq)
          yield event
        }
      },
    }
    await requireSameRun(ledger, run.id, said('Second.'))
    // What this run begins with: run_started, history_carried, input_received.
    expect(read).toEqual([1, 2, 3])
    await expect(requireSameRun(ledger, run.id, said('Another.'))).rejects.toThrow(ConfigurationError)
    const other = { ...said('Second.'), agent: 'other' }
    await expect(requireSameRun(ledger, run.id, other)).rejects.toThrow(/with another agent/)
  })
})

/** Two processes on one ledger: the first drives a run, whose tool runs until it is let end. */
function twoProcesses() {
  const ledger = memoryLedger()
  const end = Promise.withResolvers<string>()
  const tools = [testTool({ name: 'slow', run: () => end.promise })]
  const steps = [{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }]
  const one = stage({ ledger, steps, tools })
  const other = stage({
    ledger,
    steps: [{ text: 'Done.' }],
    tools,
    clock: one.clock,
    random: seededRandom(2),
  })
  return { one, other, end: () => end.resolve('Slowly.') }
}

const message = { role: 'user', parts: [{ type: 'text', text: 'Hurry.' }] } as const

describe('a command that is sent to a run', () => {
  it('of another process is decided there, and takes nothing over', async () => {
    const { one, other, end } = twoProcesses()
    const run = one.start()
    while (ofType(await one.eventsOf(run), 'tool_started').length === 0) await Promise.resolve()
    const sent = other.runtime.send(run.id, { type: 'steer', message, receipt: 'r1' })
    expect(await one.waitUntilSettled(sent)).toEqual({ accepted: true })
    end()
    expect(await one.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const events = checkedRun(await one.eventsOf(run))
    expect(ofType(events, 'run_resumed')).toEqual([])
    expect(ofType(events, 'input_settled')).toMatchObject([{ receipt: 'r1', delivered: true }])
  })

  it('that no process drives has this one take it over', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const one = stage({ steps, tools: [pay] })
    const { runId, pendingApprovals } = await one.play()
    const other = stage({ ledger: one.ledger, steps: [{ text: 'Paid.' }], tools: [pay], clock: one.clock })
    const { toolCallId } = pendingApprovals[0]!
    const command = { type: 'approve', toolCallId, by: 'ada' } as const
    expect(await other.waitUntilSettled(other.runtime.send(runId, command))).toEqual({ accepted: true })
    await other.waitUntilSettled(other.runtime.idle())
    expect(ofType(checkedRun(await one.eventsOf(runId)), 'run_finished')).toMatchObject([
      { reason: 'answered' },
    ])
    expect(await other.waitUntilSettled(other.runtime.send(runId, command))).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
  })

  it('twice under one key is one command', async () => {
    const { one, other, end } = twoProcesses()
    const run = one.start()
    while (ofType(await one.eventsOf(run), 'tool_started').length === 0) await Promise.resolve()
    const send = () => other.runtime.send(run.id, { type: 'queue', message, receipt: 'r1' }, { key: 'k1' })
    expect(await one.waitUntilSettled(send())).toEqual({ accepted: true })
    await expect(one.waitUntilSettled(send())).rejects.toMatchObject({
      code: 'ledger_conflict',
      kind: 'unique',
    })
    end()
    await one.waitUntilSettled(run.result)
    expect(ofType(await one.eventsOf(run), 'input_received')).toHaveLength(2)
  })

  it('that is incomplete, or to no run, is refused before anything is sent', async () => {
    const { runtime, play, eventsOf } = stage()
    const { runId, seq } = await play()
    const incomplete = { type: 'approve', toolCallId: 'x' } as unknown as Parameters<typeof runtime.send>[1]
    expect(await runtime.send(runId, incomplete)).toMatchObject({ accepted: false, code: 'malformed' })
    expect(await eventsOf(runId)).toHaveLength(seq)
    const cancel = { type: 'cancel' } as const
    await expect(runtime.send('x', cancel)).rejects.toThrow(RunNotFoundError)
    await expect(runtime.send('01a20ad2-04d4-72fd-99e7-7861fc19641d', cancel)).rejects.toThrow(
      RunNotFoundError,
    )
    const misspelt = { keys: 'k1' } as object
    await expect(runtime.send(runId, cancel, misspelt)).rejects.toThrow(ConfigurationError)
  })
})
