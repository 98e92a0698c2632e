// What one run says over its agents: guardrails, filters, and how it is traced.
import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  defineGuardrail,
  handoff,
  joinText,
  memoryLedger,
  type Message,
  outputMask,
  type RunOptions,
  type RuntimeOptions,
  withRuntimeRules,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

const note = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const said = (messages: readonly Message[]): readonly string[] =>
  messages.map((message) => (message.role === 'tool' ? 'results' : joinText(message.parts)))
const rewrites = (name: string) =>
  defineGuardrail({ name, on: 'input', check: ({ text }) => ({ replace: `${text} ${name}` }) })

/** A desk that hands over to a clerk, whose model is `clerk`. */
function office(
  options: Omit<RuntimeOptions, 'ledger'> = {},
  filter?: (m: readonly Message[]) => readonly Message[],
) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const clerk = scriptedModel([{ text: 'Done.' }])
  const next = defineAgent({ name: 'clerk', description: 'Ends it.', instructions: 'End.', model: clerk })
  const model = scriptedModel([{ text: 'Over.', toolCalls: [{ name: 'transfer_to_clerk', input: {} }] }])
  const desk = defineAgent({
    ...{ name: 'desk', instructions: 'Hand over.', model },
    handoffs: [filter ? handoff(next, { filter }) : next],
  })
  const runtime = createRuntime({ ledger, agents: [desk], host: { clock, report: () => {} }, ...options })
  const play = async (own: RunOptions) => {
    const run = runtime.run(desk, 'Go.', own)
    await waitUntilSettled(clock, run.result)
    return checkedRun(await recorded(ledger, run.id))
  }
  return { clock, ledger, clerk, desk, model, runtime, play }
}

describe('the rules of a run', () => {
  it('add guardrails to those of the runtime and the agent, for every agent of the run, and for no other run', async () => {
    const set = office({ guardrails: [rewrites('all')] })
    const events = await set.play({ guardrails: [rewrites('run')] })
    expect(said(set.model.requests[0]!.messages)).toEqual(['Go. all run'])
    const [started] = ofType(events, 'run_started')
    const names = [
      { name: 'all', on: 'input' },
      { name: 'run', on: 'input' },
    ]
    expect(started?.definition.guardrails).toEqual(names)
    expect(ofType(events, 'agent_handed_off')[0]?.definition.guardrails).toEqual(names)
    expect(started?.rules).toEqual([
      { option: 'guardrails', name: 'run', digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ])
    const model = scriptedModel([{ text: 'Done.' }])
    const other = defineAgent({ name: 'other', instructions: '', model })
    const run = set.runtime.run(other, 'Go.')
    await waitUntilSettled(set.clock, run.result)
    expect(said(model.requests[0]!.messages)).toEqual(['Go. all'])
    expect(ofType(await recorded(set.ledger, run.id), 'run_started')[0]?.rules).toBe(undefined)
    expect(() => set.runtime.run(set.desk, 'Go.', { guardrails: [rewrites('all')] })).toThrow(
      'Agent desk has two guardrails named all',
    )
  })

  it('replace the filters of the runtime, and not that of a handoff', async () => {
    const short = (text: string) => (): readonly Message[] => [note(text)]
    const runtime = { handoffFilter: short('of the runtime'), inputFilter: short('sent by the runtime') }
    const seen = async (
      own: RunOptions,
      options: typeof runtime | object = runtime,
      filter?: () => Message[],
    ) => {
      const set = office(options, filter)
      await set.play(own)
      return said(set.clerk.requests[0]!.messages)
    }
    const all = { inputFilter: (messages: readonly Message[]) => messages }
    expect(await seen({ ...all })).toEqual(['of the runtime'])
    expect(await seen({ ...all, handoffFilter: short('of the run') })).toEqual(['of the run'])
    expect(await seen({ ...all, nestHandoffHistory: true })).toEqual([
      expect.stringContaining('What was said and done before you took over:'),
    ])
    const handoffHistoryMapper = (messages: readonly Message[]) => [note(`${messages.length} messages`)]
    expect(await seen({ ...all, nestHandoffHistory: true, handoffHistoryMapper })).toEqual(['3 messages'])
    expect(await seen({ ...all, nestHandoffHistory: false })).toEqual(['Go.', 'Over.', 'results'])
    expect(await seen({ ...all, handoffFilter: short('of the run') }, runtime, () => [note('own')])).toEqual([
      'own',
    ])
    expect(await seen({})).toEqual(['sent by the runtime'])
    const inputFilter = async (messages: readonly Message[], context: unknown) => [
      note(`${messages.length} for ${String(context)}`),
    ]
    expect(await seen({ inputFilter, context: 'ada' } as RunOptions)).toEqual(['1 for ada'])
  })

  it('refuse a mapper that no handoff would ask', async () => {
    const handoffHistoryMapper = (messages: readonly Message[]) => messages
    const refused = /handoffHistoryMapper is given, and nestHandoffHistory is not true/
    for (const nestHandoffHistory of [undefined, false]) {
      const rules = { handoffHistoryMapper, nestHandoffHistory }
      const set = office()
      expect(() => set.runtime.run(set.desk, 'Go.', rules)).toThrow(refused)
      expect(() => office(rules)).toThrow(refused)
      expect(() => withRuntimeRules(set.desk, rules)).toThrow(refused)
    }
    await office({ nestHandoffHistory: true }).play({ handoffHistoryMapper })
    await office({ nestHandoffHistory: true, handoffHistoryMapper }).play({ nestHandoffHistory: false })
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('boom')
      },
      /^inputFilter failed: boom\. No model was called\./,
    ],
    ['rejects', () => Promise.reject(new Error('boom')), /^inputFilter failed: boom\. No model was called\./],
    ['returns nothing', () => undefined, /^inputFilter: messages is missing: give a list/],
    ['resolves to nothing', async () => undefined, /^inputFilter: messages is missing: give a list/],
    ['returns what is no message', () => [1], /^inputFilter: messages\[0\] is 1; expected a message/],
    ['leaves nothing', () => [], /^inputFilter returned messages that no provider takes/],
  ])('name a filter that %s, and send no model what it was to leave out', async (_, inputFilter, error) => {
    const set = office()
    await expect(set.play({ inputFilter } as unknown as RunOptions)).rejects.toThrow(error)
    expect(set.model.requests).toEqual([])
  })

  it('ask for approvals, change text, and do not reach child runs', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const pay = testTool({ name: 'pay', effect: 'write' })
    const helper = defineAgent({
      ...{ name: 'helper', description: 'Pays.', instructions: 'Pay.', tools: [pay] },
      model: scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Card 4242.' }]),
    })
    const lead = defineAgent({
      ...{ name: 'lead', instructions: 'Ask.', tools: [agentTool(helper)] },
      model: scriptedModel([
        { toolCalls: [{ name: 'helper', input: { task: 'Pay.' } }] },
        { text: 'Card 4242.' },
      ]),
    })
    const runtime = createRuntime({ ledger, agents: [lead], host: { clock } })
    const run = runtime.run(lead, 'Go.', {
      approval: () => 'ask',
      outputStream: {
        transforms: [outputMask({ name: 'cards', pattern: /\d{4}/g, window: 4, replacement: '…' })],
      },
      tracing: false,
      traceContent: false,
    })
    const asked = await waitUntilSettled(clock, run.result)
    expect(asked.pendingApprovals.map(({ name }) => name)).toEqual(['helper'])
    await run.approve(asked.pendingApprovals[0]!, { by: 'ada' })
    const { text } = await waitUntilSettled(clock, run.result)
    expect([text, pay.runs.length]).toEqual(['Card ….', 1])
    const starts = []
    for await (const { runId } of ledger.runs())
      starts.push(...ofType(checkedRun(await recorded(ledger, runId)), 'run_started'))
    const [child, parent] = starts
    expect(parent?.rules?.map(({ option, name }) => [option, name])).toEqual([
      ['approval', 'approval'],
      ['outputStream', 'cards'],
    ])
    expect([child?.agent, child?.rules, child?.tracing, child?.traceContent]).toEqual([
      ...['helper', undefined],
      ...[false, false],
    ])
  })
})

describe('a resume of a run with rules of its own', () => {
  const own = { guardrails: [rewrites('run')], nestHandoffHistory: true }
  const waiting = async (onDrift?: 'continue' | 'refuse', rules: RunOptions = own) => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const agent = defineAgent({ name: 'payer', instructions: '', tools: [pay], model: scriptedModel(steps) })
    const host = { clock, report: () => {} }
    const first = createRuntime({ ledger, agents: [agent], host })
    const { runId, pendingApprovals } = await waitUntilSettled(clock, first.run(agent, 'Go.', rules).result)
    const second = createRuntime({ ledger, agents: [agent], host, ...(onDrift && { onDrift }) })
    await ledger.put(runId, {
      key: 'k',
      at: 0,
      command: { type: 'approve', toolCallId: pendingApprovals[0]!.toolCallId, by: 'ada' },
    })
    const resumed = async (given: object = {}) => {
      const run = second.resume(runId, given)
      const failure = await waitUntilSettled(
        clock,
        run.result.then(() => undefined, String),
      )
      return { failure, events: await recorded(ledger, runId) }
    }
    return { agent, ledger, runId, resumed, clock }
  }

  it('is refused without them, which it names, and continues once they are given', async () => {
    for (const onDrift of [undefined, 'refuse'] as const) {
      const { resumed } = await waiting(onDrift)
      const refused = await resumed()
      expect(refused.failure).toContain('was not given to continue with: guardrails run. Give it to resume')
      expect(refused.events.at(-1)?.type).toBe('approval_requested')
      const { failure, events } = await resumed({ guardrails: [rewrites('run')] })
      expect(failure).toBe(undefined)
      expect(events.at(-1)).toMatchObject({ type: 'run_finished', reason: 'answered' })
      expect(ofType(events, 'run_resumed')[0]).not.toHaveProperty('lacks')
      checkedRun(events)
    }
  })

  it('goes on without them where its runtime says so, and records which', async () => {
    const { failure, events } = await (await waiting('continue')).resumed()
    expect(failure).toBe(undefined)
    const [resumption] = ofType(checkedRun(events), 'run_resumed')
    expect(resumption?.lacks).toEqual([expect.objectContaining({ option: 'guardrails', name: 'run' })])
    expect(resumption?.definition?.guardrails).toBe(undefined)
  })

  it('is refused with other code of the name, if drift is refused', async () => {
    const other = defineGuardrail({ name: 'run', on: 'input', check: () => 'pass' })
    const strict = await (await waiting('refuse')).resumed({ guardrails: [other] })
    expect(strict.failure).toContain('onDrift is refuse. What differs: guardrails run.')
    expect((await (await waiting()).resumed({ guardrails: [other] })).failure).toBe(undefined)
  })

  it('takes from the record that handoffs fold the past', async () => {
    const handoffHistoryMapper = (messages: readonly Message[]) => messages
    const { resumed } = await waiting(undefined, { nestHandoffHistory: true, handoffHistoryMapper })
    expect((await resumed({ handoffHistoryMapper })).failure).toBe(undefined)
  })

  it('is needed by a fork, too', async () => {
    const { ledger, runId, agent, clock } = await waiting()
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock, report: () => {} } })
    const failure = await runtime.fork(runId, { atSeq: 2 }).result.then(() => undefined, String)
    expect(failure).toContain('guardrails run')
    const fork = runtime.fork(runId, { atSeq: 2, guardrails: own.guardrails })
    expect(await waitUntilSettled(clock, fork.result)).toMatchObject({ reason: 'answered', text: 'Paid.' })
  })
})
