// What a run of a session begins with, value by value, and what is said of a run that keeps its session busy.
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  LedgerConflictError,
  memoryLedger,
  RunNotFoundError,
  type Ledger,
  type RunState,
} from '@tallystick/core'
import { evolve } from '@tallystick/core/machine'
import {
  sampleFacts,
  manualClock,
  sampleRunId,
  scriptedModel,
  seededRandom,
  stampFacts,
  testTool,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { createAgentRegistry } from '../src/agent/registry.ts'
import type { RuntimeParts } from '../src/runtime/runtime-parts.ts'
import {
  createBusySessionError,
  createDrainedError,
  createInterruptedError,
  createKeptInputError,
} from '../src/runtime/follow-run.ts'
import {
  isPlaceTaken,
  readLastRun,
  readPast,
  type PastOptions,
  requireSoundEdits,
  awaitBegun,
} from '../src/runtime/session.ts'
import { toUserMessage, startCommand } from '../src/runtime/start-run.ts'
import { defaultRetryPolicy } from '../src/events/limits.ts'
import { recorded, stage } from './stage.ts'

const model = scriptedModel([{ text: 'Hello.' }, { text: 'Again.' }])
const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })

/** A ledger with one run that has answered, of a session or of none. */
async function answered(options: { readonly sessionId?: string; readonly subject?: string } = {}) {
  const ledger = memoryLedger()
  const clock = manualClock()
  const talking = defineAgent({
    name: 'agent',
    instructions: 'Act.',
    model: scriptedModel([{ text: 'Hello.' }]),
  })
  const runtime = createRuntime({ ledger, agents: [talking], host: { clock, random: seededRandom(1) } })
  const { runId, seq } = await runtime.run(talking, 'Hi.', options).result
  const runs = { isDriven: async () => false, isDrained: false }
  const past = (of: PastOptions, from: Ledger = ledger) =>
    readPast({ ledger: from, host: { clock }, runs } as unknown as RuntimeParts, of)
  return { ledger, runId, seq, past }
}

const history = [
  { role: 'user', parts: [{ type: 'text', text: 'Hi.' }] },
  { role: 'assistant', parts: [{ type: 'text', text: 'Hello.' }] },
]

describe('the past of a run', () => {
  it('is nothing without a session, and its place in a new one', async () => {
    const { past } = await answered()
    expect(await past({})).toStrictEqual({})
    expect(await past({ sessionId: 'ann' })).toStrictEqual({ sessionId: 'ann', sessionPlace: 1 })
  })

  it('is what the last run of its session has said', async () => {
    const { past, runId, seq } = await answered({ sessionId: 'ann' })
    const begun = await past({ sessionId: 'ann' })
    expect(begun).toEqual({
      ...{ sessionId: 'ann', sessionPlace: 2, parent: { runId, seq, relation: 'session' } },
      history: [history[0], expect.objectContaining(history[1]!)],
    })
    expect(Object.keys(begun)).toEqual(['sessionId', 'sessionPlace', 'parent', 'history'])
    const about = await answered({ sessionId: 'ann', subject: 'bob' })
    expect(await about.past({ sessionId: 'ann' })).toMatchObject({ subject: 'bob' })
  })

  it('is that of another run where it begins from one', async () => {
    const { past, runId, seq } = await answered({ sessionId: 'ann' })
    expect(await past({ sessionId: 'bob', from: { runId } })).toMatchObject({
      ...{ sessionId: 'bob', sessionPlace: 1, parent: { runId, seq, relation: 'branch' } },
    })
    expect(await past({ from: { runId } })).toMatchObject({ parent: { relation: 'branch' } })
    expect(await past({ sessionId: 'ann', from: { runId, atSeq: 2 } })).toMatchObject({
      ...{ sessionPlace: 2, parent: { runId, seq: 2, relation: 'session' }, history: [history[0]] },
    })
    const first = await past({ from: { runId, atSeq: 1 } })
    expect(first).toStrictEqual({ parent: { runId, seq: 1, relation: 'branch' } })
    await expect(past({ from: { runId, atSeq: seq + 1 } })).rejects.toThrow(
      `Run ${runId} ends at event ${seq}; a run cannot begin from its event ${seq + 1}.`,
    )
    await expect(past({ from: { runId: sampleRunId(9) } })).rejects.toThrow(RunNotFoundError)
    await expect(past({ from: { runId: 'run-9' } })).rejects.toThrow(RunNotFoundError)
  })

  it('is edited where it is that of the run that the edits name', async () => {
    const { past, runId } = await answered({ sessionId: 'ann' })
    const edits = [{ index: 0, message: { role: 'user', parts: [{ type: 'text', text: 'Hm.' }] } }] as const
    expect(await past({ sessionId: 'ann', edit: { of: runId, edits } })).toMatchObject({ edits: { edits } })
    const signed = await past({ sessionId: 'ann', edit: { of: runId, edits, by: 'ada', reason: 'a key' } })
    expect(signed.edits).toStrictEqual({ edits, by: 'ada', reason: 'a key' })
    const other = sampleRunId(9)
    await expect(past({ sessionId: 'ann', edit: { of: other, edits } })).rejects.toThrow(
      `follows run ${runId}: their`,
    )
    await expect(past({ edit: { of: other, edits } })).rejects.toThrow('this run has no past: their places')
  })

  it('asks the ledger for the last run of the session alone', async () => {
    const { ledger, runId } = await answered({ sessionId: 'ann' })
    const asked: unknown[] = []
    const asking: Ledger = { ...ledger, runs: (filter) => (asked.push(filter), ledger.runs(filter)) }
    expect(await readLastRun(asking, 'ann')).toMatchObject({ runId })
    expect(await readLastRun(asking, 'bob')).toBeUndefined()
    expect(asked).toEqual([
      { sessionId: 'ann', limit: 1 },
      { sessionId: 'bob', limit: 1 },
    ])
  })

  it('takes edits that a provider would accept', () => {
    const messages = history as never
    const why =
      'The edits of the history of run r cannot be made: they have to name places from 0 to 1, ascending.'
    expect(() => requireSoundEdits('r', [{ index: 2 }], messages)).toThrow(why)
    expect(() => requireSoundEdits('r', [{ index: 1 }, { index: 0 }], messages)).toThrow(ConfigurationError)
    expect(() => requireSoundEdits('r', [{ index: 1 }], messages)).not.toThrow()
  })
})

describe('a run that cannot begin', () => {
  const busy = new LedgerConflictError('session', 'busy', {
    busy: { runId: sampleRunId(1), status: 'under_way' },
  })
  const taken = new LedgerConflictError('unique', 'taken')
  const lost = new LedgerConflictError('epoch', 'lost')

  it('is joined where another run of its session is under way, or has its place', async () => {
    expect(await awaitBegun(Promise.resolve())).toBe(true)
    expect(await awaitBegun(Promise.reject(busy))).toBe(false)
    expect(await awaitBegun(Promise.reject(taken))).toBe(false)
    await expect(awaitBegun(Promise.reject(lost))).rejects.toBe(lost)
    const other = Object.assign(new Error('other'), { kind: 'unique', busy: {} })
    await expect(awaitBegun(Promise.reject(other))).rejects.toBe(other)
    expect([taken, busy, lost, other, undefined].map(isPlaceTaken)).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
  })
})

describe('the command that starts a run', () => {
  const starting = (more: object = {}) =>
    startCommand(sampleRunId(1), agent, toUserMessage('Go.'), {
      register: (each) => each,
      context: undefined,
      ...more,
    })

  it('says everything that the run goes by', () => {
    const plain = starting()
    expect(plain).toStrictEqual({
      ...{ type: 'start', runId: sampleRunId(1), agent: 'agent', definition: agent.definition },
      ...{ limits: agent.limits, retry: defaultRetryPolicy },
      input: { role: 'user', parts: [{ type: 'text', text: 'Go.' }] },
    })
    const own = {
      limits: { maxTurns: 2, maxToolCalls: undefined },
      given: { modelSettings: { seed: 1 } },
      context: null,
    }
    expect(starting(own)).toStrictEqual({
      ...plain,
      ...{ limits: { ...agent.limits, maxTurns: 2 }, modelSettings: { seed: 1 }, withContext: true },
    })
    expect(() => starting({ limits: { maxTurns: -1 } })).toThrow(
      'A run of agent agent: limits.maxTurns is -1',
    )
    const impatient = defineAgent({ name: 'agent', instructions: 'Act.', model, retry: { maxAttempts: 9 } })
    const { retry } = startCommand(sampleRunId(1), impatient, toUserMessage('Go.'), {
      register: (each) => each,
      context: undefined,
    })
    expect(retry).toStrictEqual({ ...defaultRetryPolicy, maxAttempts: 9 })
  })

  it('is limited in dollars where every model that may be called has a price', () => {
    const [second, small] = [scriptedModel([], 'second'), scriptedModel([], 'small')]
    const compaction = { maxContextTokens: 1, keepMessages: 1, summarize: small }
    const spender = defineAgent({
      name: 'spender',
      instructions: 'Act.',
      model,
      fallbacks: [second],
      compaction,
    })
    const price = { inputUsd: 1, outputUsd: 1 }
    const whole = { 'scripted-1': price, second: price, small: price }
    const limited = (prices: object, of = spender): void => {
      const { register } = createAgentRegistry(prices as never)
      startCommand(sampleRunId(1), register(of), toUserMessage('Go.'), {
        limits: { maxCostUsd: 1 },
        register,
        context: undefined,
      })
    }
    expect(() => limited(whole)).not.toThrow()
    for (const name of ['scripted-1', 'second', 'small'])
      expect(() => limited({ ...whole, [name]: undefined })).toThrow(
        `but ${name} has no price, so the limit could`,
      )
    expect(() => limited({})).toThrow('but scripted-1 has no price')
    const searching = { ...price, webSearchUsd: 0.01 }
    const prices = { ...whole, 'scripted-1': searching, second: searching }
    expect(() => limited(prices)).not.toThrow()
    const free = { ...model, maxWebSearches: 'unbounded' as const }
    const bound = { ...second, maxWebSearches: 'unbounded' as const }
    const mine = (more: object) =>
      defineAgent({ name: 'spender', instructions: 'Act.', model, compaction, ...more })
    expect(() => limited(prices, mine({ model: free }))).toThrow(
      'any number of times in one call of scripted-1',
    )
    expect(() => limited(prices, mine({ fallbacks: [bound] }))).toThrow(
      'any number of times in one call of second',
    )
    expect(() => limited(whole, mine({ model: free }))).not.toThrow()
    expect(() => limited(prices, mine({ model: { ...model, maxWebSearches: 3 } }))).not.toThrow()
  })
})

describe('what is said of a run that keeps its session busy', () => {
  const runId = sampleRunId(1)
  const { run_started, input_received } = sampleFacts(runId)
  const { parent: _parent, ...start } = run_started
  const begun = stampFacts(runId, [start, input_received]).reduce<RunState | undefined>(
    evolve,
    undefined,
  ) as RunState
  const of = `Run ${runId} of session session of ${runId}`
  const last = 'its last event, 2, is of 2025-10-09T08:53:20.002Z'

  it.each<readonly [boolean, string, string, string]>([
    [
      true,
      'under_way',
      `${of} is under way, and a second run`,
      'history. Wait for its end, cancel it, or start',
    ],
    [
      false,
      'interrupted',
      `${of} was interrupted: it has not ended, and no process drives it (${last})`,
      'No process drives it: runtime.resume(',
    ],
  ])('where a process drives it: %s', (isDriven, status, what, way) => {
    const refusal = createBusySessionError(begun, isDriven)
    expect(refusal).toMatchObject({ kind: 'session', busy: { runId, status } })
    expect(refusal.message).toContain(what)
    expect(refusal.message).toContain(way)
  })

  it('names what the run waits for', async () => {
    const waits = async (options: Parameters<typeof stage>[0]): Promise<LedgerConflictError> => {
      const set = stage(options)
      const { runId: waiting } = await set.play()
      const events = await recorded(set.ledger, waiting)
      const state = events.reduce<RunState | undefined>(evolve, undefined) as RunState
      return createBusySessionError(state, false)
    }
    const call = (...names: readonly string[]) => [{ toolCalls: names.map((name) => ({ name, input: {} })) }]
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const job = testTool({
      name: 'job',
      run: (_run, report) => {
        report.defer('j')
        return ''
      },
    })
    const asked = await waits({ steps: call('pay', 'job'), tools: [pay, job] })
    expect(asked).toMatchObject({ busy: { status: 'suspended' } })
    expect(asked.message).toMatch(
      /^Run \S+ waits for an approval of pay \(call_\w+_1\), the end of job \(call_\w+_2\), and/,
    )
    expect(asked.message).toContain(
      'Decide what it waits for (runtime.suspended() lists it), cancel it, or start',
    )
    const limited = await waits({
      steps: call('look'),
      tools: [testTool({ name: 'look' })],
      limits: { maxTurns: 1, onLimit: 'ask' },
    })
    expect(limited.message).toMatch(/^Run \S+ waits for its limit maxTurns to be raised, and a second run/)
  })

  it('names the input that its inbox keeps', () => {
    const refusal = createInterruptedError(begun)
    expect(refusal.message).toMatch(/so waiting for it would never end\. To continue, runtime\.resume\(/)
    const kept = createKeptInputError(refusal, 'i7')
    expect(kept.message).toBe(
      `${refusal.message} The inbox of the run keeps the input i7, and resume() reads it; a retry with that inputId sends it no second time.`,
    )
    expect(kept).toMatchObject({ kind: 'session', busy: { runId, status: 'interrupted', inputId: 'i7' } })
    const bare = createKeptInputError(new LedgerConflictError('session', 'x'), 'i7')
    expect(bare).not.toHaveProperty('busy')
    expect(createDrainedError(begun)).toMatchObject({ kind: 'session', busy: { status: 'under_way' } })
    expect(createDrainedError(begun).message).toContain(
      `waited for run ${runId} of session session of ${runId}. Start`,
    )
  })
})
