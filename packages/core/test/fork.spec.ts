import {
  ConfigurationError,
  defineAgent,
  joinText,
  memoryLedger,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import {
  checkTranscript,
  copyPrefix,
  mortalLedger,
  seededRandom,
  SimulatedCrash,
  testTool,
  type ScriptedReply,
  type ScriptedStep,
  sampleMessage,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { createHistory } from '../src/machine/history.ts'
import { toEditFacts, type ForkEdit } from '../src/runtime/fork.ts'
import { stateOf } from './actions.ts'
import { answered, begun, called, replyFinished, requested } from './pages.ts'
import { checkedRun, ofType, stage as stageOf, type StageOptions } from './stage.ts'

const look = { name: 'look', input: { at: 'stock' } }
const pay = { name: 'pay', input: { amount: 5 } }
const replies: readonly ScriptedReply[] = [
  { text: 'Looking.', toolCalls: [look], usage: { inputTokens: 100, outputTokens: 10 } },
  { text: 'Paying.', toolCalls: [pay], usage: { inputTokens: 200, outputTokens: 10 } },
  { text: 'Done.', usage: { inputTokens: 300, outputTokens: 10 } },
]
const script: readonly ScriptedStep[] = replies

function shop(options: StageOptions = {}) {
  const tools = [
    testTool({ name: 'look', run: () => '5 left' }),
    testTool({ name: 'pay', effect: 'write', run: () => 'paid' }),
  ]
  return { ...stageOf({ steps: script, tools, random: seededRandom(1), ...options }), tools }
}

/** A run to be forked, and its seq right after an event of a type. */
async function recorded() {
  const set = shop()
  const { runId } = await set.play('Buy one.')
  const events = await set.eventsOf(runId)
  const behind = (type: RuntimeEvent['type'], nth = 1): number =>
    events.filter((event) => event.type === type)[nth - 1]!.seq
  return { ...set, runId, events, behind }
}

describe('a fork', () => {
  it('shares the first events of another run under ids of its own, from any event on, with every law kept', async () => {
    const { ledger, clock, runId, events } = await recorded()
    for (const { seq } of events.slice(1, -1)) {
      const set = shop({ ledger, clock, steps: asTheScriptGoesOn, random: seededRandom(100 + seq) })
      const fork = set.runtime.fork(runId, { atSeq: seq })
      const result = await set.waitUntilSettled(fork.result)
      expect(result, `forked at ${seq}`).toMatchObject({ status: 'done', reason: 'answered' })
      const forked = checkedRun(await set.eventsOf(fork))
      expect(forked.slice(0, seq).map(({ type }) => type)).toEqual(
        events.slice(0, seq).map(({ type }) => type),
      )
      expect(ofType(forked, 'run_started')[0]?.parent).toEqual({
        ...{ runId, seq, relation: 'fork', writes: 'ask' },
      })
      const state = forked.reduce<RunState | undefined>(evolve, undefined)!
      expect(checkTranscript(readMessages(state.history))).toEqual([])
      // Nothing names a call of the other run but what was served from it.
      const own = forked.slice(1).map((event): object => {
        if (event.type === 'tool_result') return { ...event, reused: '' }
        if (event.type === 'tool_started') return { ...event, recorded: '' }
        if (event.type !== 'tool_requests_collected') return event
        return { ...event, calls: event.calls.map((call) => ({ ...call, recorded: '' })) }
      })
      expect(JSON.stringify(own)).not.toContain(runId.replaceAll('-', ''))
    }
  })

  it('is served the recorded results as long as it asks for the same calls: its tools do not run', async () => {
    const { ledger, runId, behind, clock } = await recorded()
    const set = shop({ ledger, clock, steps: script.slice(1), random: seededRandom(2) })
    const other = defineAgent({
      name: 'agent',
      instructions: 'Act politely.',
      model: set.model,
      tools: set.tools,
    })
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), agent: other })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(set.tools.map(({ runs }) => runs.length)).toEqual([0, 0])
    const events = checkedRun(await set.eventsOf(fork))
    expect(ofType(events, 'tool_result').map(({ name, reused }) => [name, reused !== undefined])).toEqual([
      ['look', false],
      ['pay', true],
    ])
    const keys = (runOf: readonly RuntimeEvent[]) =>
      ofType(runOf, 'tool_started').map(({ idempotencyKey }) => idempotencyKey)
    const before = keys(await set.eventsOf(runId))
    expect(keys(events).some((key) => before.includes(key))).toBe(false)
    expect(set.model.requests[0]?.instructions).toBe('Act politely.')
    expect(ofType(events, 'run_resumed')[0]?.definition?.instructions).toBe('Act politely.')
  })

  it('is served what its tool reported in any way: that it took too long, too', async () => {
    const slow = () => testTool({ name: 'look', timeoutMs: 100, run: () => new Promise(() => {}) })
    const steps: readonly ScriptedStep[] = [{ toolCalls: [look] }, { text: 'Too slow.' }]
    const set = shop({ steps, tools: [slow()] })
    const { runId } = await set.play('Look.')
    const tool = slow()
    const other = shop({
      ...{ ledger: set.ledger, clock: set.clock, steps, tools: [tool] },
      random: seededRandom(2),
    })
    const fork = other.runtime.fork(runId, { atSeq: 2 })
    expect(await other.waitUntilSettled(fork.result)).toMatchObject({ text: 'Too slow.' })
    const results = ofType(checkedRun(await other.eventsOf(fork)), 'tool_result')
    expect(results).toMatchObject([{ outcome: 'timed_out', reused: expect.any(String) as string }])
    expect(tool.runs).toHaveLength(0)
  })

  it('runs its tools from the first call on that differs, where its writes are let run', async () => {
    const { ledger, runId, behind, clock } = await recorded()
    const steps: readonly ScriptedStep[] = [
      { toolCalls: [{ name: 'pay', input: { amount: 7 } }] },
      { toolCalls: [pay] },
      { text: 'Paid twice.' },
    ]
    const set = shop({ ledger, clock, steps, random: seededRandom(2) })
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), writes: 'run' })
    await set.waitUntilSettled(fork.result)
    expect(set.tools[1]?.runs.map(({ input }) => input)).toEqual([{ amount: 7 }, { amount: 5 }])
    checkedRun(await set.eventsOf(fork))
  })

  it('says something else in the place of the input, or of any message, on record', async () => {
    const { ledger, runId, behind, clock } = await recorded()
    const set = shop({
      ledger,
      clock,
      steps: [{ text: 'Two then.' }, { text: 'Sold out.' }],
      random: seededRandom(2),
    })
    const first = set.runtime.fork(runId, {
      atSeq: behind('input_received'),
      edit: { input: 'Buy two.', by: 'ada' },
    })
    expect(await set.waitUntilSettled(first.result)).toMatchObject({ text: 'Two then.' })
    const [asked] = set.model.requests[0]?.messages ?? []
    expect(joinText(asked?.role === 'user' ? asked.parts : [])).toBe('Buy two.')
    expect(ofType(checkedRun(await set.eventsOf(first)), 'history_edited')).toMatchObject([
      { by: 'ada', edits: [{ index: 0 }] },
    ])

    const edit = { history: [{ index: 2 }] }
    const second = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), edit })
    await expect(set.waitUntilSettled(second.result)).rejects.toThrow(
      /Remove a message together with its tool results/,
    )
    const amid = set.runtime.fork(runId, { atSeq: behind('tool_started'), edit: { input: 'Buy two.' } })
    await expect(set.waitUntilSettled(amid.result)).rejects.toThrow(/in the middle of a turn \(executing\)/)
  })

  it('says something else only where a turn begins or ends, and is refused in the middle of one', async () => {
    const { ledger, clock, runId, events } = await recorded()
    const states: RunState[] = []
    for (const event of events) states.push(evolve(states.at(-1), event))
    const found: [RunState['phase'], string, number][] = []
    const expected: typeof found = []
    for (const state of states.slice(1, -1)) {
      const { seq, phase } = state
      const set = shop({ ledger, clock, steps: asTheScriptGoesOn, random: seededRandom(300 + seq) })
      const fork = set.runtime.fork(runId, { atSeq: seq, edit: { input: 'Buy two.' } })
      const how = await set.waitUntilSettled(fork.result).then(
        () => 'edited',
        ({ message }: Error) => /in the middle of a turn \(\w+\)/.exec(message)?.[0] ?? message,
      )
      found.push([phase, how, ofType(await set.eventsOf(fork), 'history_edited').length])
      const isAmid =
        ['streaming', 'executing'].includes(phase) || (phase === 'collecting' && state.calls.length > 0)
      expected.push(isAmid ? [phase, `in the middle of a turn (${phase})`, 0] : [phase, 'edited', 1])
    }
    expect(found).toEqual(expected)
    const phases = new Set(found.flatMap(([phase, how]) => (how === 'edited' ? [phase] : [])))
    expect(phases).toEqual(new Set(['idle', 'injecting', 'collecting']))
  })

  it('gives a call another result where it has none yet', async () => {
    const { ledger, runId, behind, clock, events } = await recorded()
    const set = shop({ ledger, clock, steps: [{ text: 'Sold out.' }], random: seededRandom(2) })
    const { toolCallId } = ofType(events, 'tool_started')[0]!
    const edit = { results: [{ toolCallId, content: '0 left' }] }
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_started'), edit })
    expect(await set.waitUntilSettled(fork.result)).toMatchObject({ text: 'Sold out.' })
    expect(JSON.stringify(set.model.requests[0]?.messages)).toContain('0 left')
    expect(set.tools[0]?.runs).toHaveLength(0)
    checkedRun(await set.eventsOf(fork))
    const late = set.runtime.fork(runId, { atSeq: behind('tool_results_injected'), edit })
    await expect(set.waitUntilSettled(late.result)).rejects.toThrow(/cannot give it a result there/)
  })

  it('is refused where it could not begin, and records nothing', async () => {
    const { runtime, waitUntilSettled: settle, runId, events, eventsOf } = await recorded()
    for (const atSeq of [0, 1, events.length, 999]) {
      const fork = runtime.fork(runId, { atSeq })
      await expect(settle(fork.result)).rejects.toThrow(/cannot be forked at its event/)
      expect(await eventsOf(fork)).toEqual([])
    }
    await expect(settle(runtime.fork('nobody', { atSeq: 2 }).result)).rejects.toThrow(
      /Run nobody is not in this ledger/,
    )
  })

  it('can be taken up by another process, which still serves recorded results', async () => {
    const { ledger, runId, behind, clock } = await recorded()
    const asking = testTool({
      name: 'pay',
      effect: 'write',
      check: () => ({ kind: 'ask' }),
      run: () => 'paid',
    })
    const set = shop({
      ledger,
      clock,
      steps: script.slice(1),
      random: seededRandom(2),
      tools: [testTool({ name: 'look' }), asking],
    })
    const fork = set.runtime.fork(runId, { atSeq: behind('tool_results_injected') })
    const [pending] = (await set.waitUntilSettled(fork.result)).pendingApprovals
    const next = shop({
      ledger,
      clock,
      steps: script.slice(2),
      random: seededRandom(3),
      tools: [testTool({ name: 'look' }), asking],
    })
    const resumed = next.runtime.resume(fork.id)
    await next.waitUntilSettled(resumed.approve(pending!.toolCallId, { by: 'ada' }))
    expect(await next.waitUntilSettled(resumed.result)).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(asking.runs).toHaveLength(0)
    checkedRun(await next.eventsOf(fork))
  })

  it('ends a call that it has begun itself by its own work, also where the other run has the result by then', async () => {
    const { events, runId } = await recorded()
    const ended = events.findIndex(({ type }) => type === 'tool_result')
    const ledger = memoryLedger()
    await copyPrefix(events.slice(0, ended), ledger)
    const dying = shop({
      ledger: mortalLedger(ledger, { append: 1, stored: false, after: 'tool_started' }),
      random: seededRandom(2),
    })
    const fork = dying.runtime.fork(runId, { atSeq: 2 })
    await expect(dying.waitUntilSettled(fork.result)).rejects.toThrow(SimulatedCrash)
    for (const event of events.slice(ended))
      await ledger.append(runId, { expectedSeq: event.seq - 1, epoch: 1 }, [event], { durability: 'barrier' })
    const next = shop({ ledger, steps: script.slice(1), random: seededRandom(3) })
    await next.waitUntilSettled(next.runtime.resume(fork.id).result)
    const own = checkedRun(await next.eventsOf(fork))
    expect(ofType(own, 'tool_started').map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(ofType(own, 'tool_result')[0]).not.toHaveProperty('reused')
    expect([dying, next].map(({ tools }) => tools[0]!.runs.length)).toEqual([1, 1])
  })
})

/** Whatever is shared, the model says what the script says at that place. */
const asTheScriptGoesOn: readonly ScriptedStep[] = Array.from(
  { length: 5 },
  (): ScriptedStep => (request) => {
    const said = request.messages.filter(({ role }) => role === 'assistant').length
    return replies[said] ?? { text: 'Done.' }
  },
)

// What a fork changes in the history of the events that it shares: where it may, and in which order it is recorded.

const reply = { role: 'assistant', parts: [], model: {}, stopReason: 'end', partial: false }
const messages = [sampleMessage('One'), reply, sampleMessage('Two'), reply] as never
const calls = [requested(1)]
const pages = {
  collecting: answered('end'),
  streaming: [...begun(), called()],
  checking: [...begun(), called(), ...calls, replyFinished(calls)],
}

function facts(edit: ForkEdit, page: keyof typeof pages = 'collecting'): unknown {
  const state = { ...stateOf(pages[page]), history: createHistory(messages) }
  return toEditFacts(edit, { state, source: state })
}

describe('the history of a fork', () => {
  const edited = (edits: readonly object[], more: object = {}) => [
    { type: 'history_edited', turn: 1, edits, ...more },
  ]
  const [one, two] = [sampleMessage('First'), sampleMessage('Second')]

  it('is edited in the order of its messages, and says who did it', () => {
    const history = [
      { index: 2, message: two },
      { index: 0, message: one },
    ]
    expect(facts({ history, by: 'ada', reason: 'A test.' })).toEqual(
      edited(history.toReversed(), { by: 'ada', reason: 'A test.' }),
    )
  })

  it('has another input in the place of the last message of the user', () => {
    const history = [{ index: 0, message: one }]
    expect(facts({ input: 'Second', history })).toEqual(edited([...history, { index: 2, message: two }]))
    expect(facts({ input: [{ type: 'text', text: 'Second' }] })).toEqual(edited([{ index: 2, message: two }]))
  })

  it('is not edited where nothing is asked', () => {
    expect(facts({})).toEqual([])
    expect(facts({ history: [] }, 'streaming')).toEqual([])
  })

  it.each(['streaming', 'checking'] as const)('is not edited in the middle of a turn: %s', (page) => {
    expect(() => facts({ input: 'x' }, page)).toThrow(ConfigurationError)
    expect(() => facts({ input: 'x' }, page)).toThrow(/is in the middle of a turn \((streaming|collecting)\)/)
  })

  it('has no result and no decision for a call that is not under way there', () => {
    expect(() => facts({ results: [{ toolCallId: 'c', content: 'x' }] })).toThrow(
      /Tool call c is not a started call without a result at event \d+/,
    )
    expect(() => facts({ approvals: [{ toolCallId: 'c', by: 'ada', approved: true }] })).toThrow(
      /Tool call c waits for no approval at event \d+/,
    )
  })
})
