import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  ProviderError,
  type Agent,
  type AgentOptions,
  type Ledger,
  type Model,
  type Run,
  type RunId,
  type RunOptions,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  copyPrefix,
  manualClock,
  scriptedModel,
  seededRandom,
  waitUntilSettled,
  testTool,
  type ManualClock,
  type ScriptedStep,
} from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'

const usage = { inputTokens: 100, outputTokens: 10 }
const calls = (...names: readonly string[]): ScriptedStep => ({
  ...{ text: 'Let me see.', usage },
  toolCalls: names.map((name) => ({ name, input: {} })),
})
const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })

interface Recording {
  readonly ledger: Ledger
  readonly clock: ManualClock
  readonly agent: Agent<unknown>
  /** Starts a run of the agent. */
  readonly start: (options?: RunOptions) => Run
  readonly eventsOf: (runId: RunId) => Promise<readonly RuntimeEvent[]>
  /** Demands that a run comes out as it was recorded; answers its events. */
  readonly replays: (runId: RunId) => Promise<readonly RuntimeEvent[]>
}

/** A runtime with one agent. With `ticking` its clock advances at every reading. */
function recording(
  options: Partial<AgentOptions<unknown>> & { readonly steps?: readonly ScriptedStep[] },
  { ticking = false, seed = 1 } = {},
): Recording {
  const { steps = [{ text: 'Done.', usage }], ...own } = options
  const model = scriptedModel(steps)
  const agent = defineAgent<unknown>({ name: 'agent', instructions: 'Act.', model, ...own })
  const ledger = memoryLedger()
  const still = manualClock()
  const clock = ticking ? { ...still, now: () => (still.advance(1), still.now()) } : still
  const host = { clock, random: seededRandom(seed), report: () => {} }
  const runtime = createRuntime({ ledger, agents: [agent], host })
  const eventsOf = (runId: RunId): Promise<readonly RuntimeEvent[]> => Array.fromAsync(ledger.read(runId))
  return {
    ...{ ledger, clock: still, agent, eventsOf },
    start: (given) => runtime.run(agent, 'Go.', given),
    replays: async (runId) => {
      const events = await eventsOf(runId)
      expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: events.length })
      return events
    },
  }
}

const ofType = <T extends RuntimeEvent['type']>(
  events: readonly RuntimeEvent[],
  type: T,
): readonly Extract<RuntimeEvent, { readonly type: T }>[] =>
  events.filter((event): event is Extract<RuntimeEvent, { readonly type: T }> => event.type === type)

describe('a run replays to itself', () => {
  it('about a subject', async () => {
    const { start, replays } = recording({})
    const { runId } = await start({ subject: 'customer-7' }).result
    expect((await replays(runId))[0]).toMatchObject({ subject: 'customer-7' })
  })

  it('whose approval came too late, and one that a person called expiry denied', async () => {
    const options = { tools: [pay], limits: { maxApprovalMs: 1_000 }, steps: [calls('pay'), { text: 'No.' }] }
    const late = recording(options, { ticking: true })
    const lateRun = late.start()
    await lateRun.result
    late.clock.advance(2_000)
    await createRuntime({ ledger: late.ledger, agents: [late.agent], host: { clock: late.clock } }).resume(
      lateRun.id,
    ).result
    const [expired] = ofType(await late.replays(lateRun.id), 'approval_decided')
    expect(expired).toMatchObject({ approved: false, by: 'expiry', cause: 'controller' })

    const denied = recording(options)
    const run = denied.start()
    const [pending] = (await run.result).pendingApprovals
    await run.deny(pending!.toolCallId, { by: 'expiry', reason: 'nobody decided in time' })
    await run.result
    const [decided] = ofType(await denied.replays(run.id), 'approval_decided')
    expect([decided?.by, decided?.cause]).toEqual(['expiry', undefined])
  })

  it('with a deadline that comes between a reply and what follows from it', async () => {
    for (let maxDurationMs = 1; maxDurationMs <= 60; maxDurationMs++) {
      const look = testTool({ name: 'look' })
      const steps = [calls('look'), calls('look'), { text: 'Done.', usage }]
      const { start, replays } = recording(
        { steps, tools: [look], limits: { maxDurationMs } },
        { ticking: true },
      )
      const { runId } = await start().result
      expect((await replays(runId)).at(-1)?.type).toBe('run_finished')
    }
  })

  it('that continued after a history that guardrails had not passed', async () => {
    const guardrails = [{ name: 'look', on: 'input', check: () => 'pass' as const }] as const
    const set = recording({ steps: [{ fail: 'authentication' }, { text: 'Yes.' }], guardrails })
    const runtime = createRuntime({ ledger: set.ledger, agents: [set.agent], host: { clock: set.clock } })
    const slow = defineAgent<unknown>({
      ...{ name: 'agent', instructions: 'Act.', model: scriptedModel([]) },
      guardrails: [{ name: 'look', on: 'input', check: () => new Promise<never>(() => {}) }],
    })
    const host = { clock: set.clock, report: () => {} }
    const first = createRuntime({ ledger: set.ledger, agents: [slow], host }).run(slow, 'Go.', {
      sessionId: 's',
    })
    await waitUntilSettled(set.clock, Promise.all([first.cancel('enough'), first.result]))
    const next = runtime.run(set.agent, 'Again.', { sessionId: 's' })
    await next.result
    const events = await set.replays(next.id)
    expect(ofType(events, 'history_carried')[0]).toMatchObject({ uncheckedFrom: 0 })
  })

  it('that was drained while a model was at work, and was taken up again', async () => {
    const gate = Promise.withResolvers<void>()
    const steps = [
      { text: 'Hm.', until: gate.promise, toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Blue.' },
    ]
    const set = recording({ steps, tools: [testTool({ name: 'look' })] })
    const host = { clock: set.clock, report: () => {} }
    const runtime = createRuntime({ ledger: set.ledger, agents: [set.agent], host })
    const run = runtime.run(set.agent, 'Go.')
    run.events$.subscribe(({ type }) => {
      if (type === 'assistant_started') void runtime.drain(1_000)
      if (type === 'assistant_started') gate.resolve()
    })
    expect(await waitUntilSettled(set.clock, run.result)).toMatchObject({ status: 'interrupted' })
    await set.replays(run.id)
    const again = createRuntime({ ledger: set.ledger, agents: [set.agent], host }).resume(run.id)
    expect(await waitUntilSettled(set.clock, again.result)).toMatchObject({ text: 'Blue.' })
    const events = await set.replays(run.id)
    expect(ofType(events, 'assistant_message_finished').map(({ draining }) => draining)).toEqual([
      true,
      undefined,
    ])
  })

  it('that waited by chance before it tried again, or by chance not long enough to give up', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const steps = [...Array.from({ length: 3 }, () => ({ fail: 'overloaded' as const })), { text: 'Done.' }]
      const retry = { maxAttempts: 4, baseMs: 100, capMs: 1_000, maxTotalMs: 450 }
      const { start, replays, clock } = recording({ steps, retry }, { seed })
      const { runId } = await waitUntilSettled(clock, start().result)
      expect((await replays(runId)).at(-1)?.type).toBe('run_finished')
    }
  })

  it('whose provider told nothing of what it used, where a limit counts it', async () => {
    const steps = [{ text: 'Hm.', fail: 'truncated' as const }, { text: 'Done.' }]
    const { start, replays, clock } = recording({ steps, limits: { maxTotalTokens: 9_000 } })
    const { runId } = await waitUntilSettled(clock, start().result)
    const events = await replays(runId)
    expect(ofType(events, 'usage_updated').map(({ cause }) => cause)).toEqual([
      'model_failed',
      'model_finished',
    ])
  })

  it('with parts that were not streamed, at places of their own, in front of an estimate', async () => {
    const opaque = { provider: 'test', api: 'test', data: 'sealed' }
    const model: Model = {
      ...{ provider: 'test', api: 'test', modelId: 'm' },
      stream: () =>
        new Observable((subscriber) => {
          subscriber.next({ type: 'model_text', part: 3, text: 'Hel' })
          subscriber.next({
            ...{ type: 'model_finished', stopReason: 'end' },
            parts: [
              { type: 'reasoning', text: '', opaque, part: 1 },
              { type: 'text', text: 'Hello', part: 3 },
              { type: 'text', text: '', part: 4 },
              { type: 'text', text: ' there', part: 8 },
            ],
          })
          subscriber.complete()
        }),
    }
    const { start, replays, agent } = recording({ model, limits: { maxTotalTokens: 9_000 } })
    const { runId, text } = await start().result
    expect(text).toBe('Hello there')
    const events = await replays(runId)
    const [finished] = ofType(events, 'assistant_message_finished')
    expect(finished?.places).toEqual([1, 3, 4, 8])
    // A run that is under way may end on record within what one report says, and nowhere else.
    const replayed = async (record: readonly RuntimeEvent[]): Promise<object> => {
      const ledger = memoryLedger()
      await copyPrefix(record, ledger)
      return await replayRun(ledger, runId, () => agent)
    }
    for (let seq = 1; seq <= events.length; seq++) {
      expect(await replayed(events.slice(0, seq))).toEqual({ runId, events: seq })
    }
    const at = events.findIndex(({ type }) => type === 'assistant_message_finished')
    const forged = { ...events[at - 1]!, cause: 'model_text' } as RuntimeEvent
    expect(await replayed([...events.slice(0, at - 1), forged])).toMatchObject({
      divergence: { recorded: { cause: 'model_finished' }, differences: [] },
    })
  })
})

describe('a model that fails as interrupted', () => {
  it('is tried as often as the policy says, though no process stopped', async () => {
    let asked = 0
    const model: Model = {
      ...{ provider: 'test', api: 'test', modelId: 'm' },
      stream: () =>
        new Observable((subscriber) => {
          asked++
          subscriber.error(
            new ProviderError({ class: 'interrupted', message: 'It went away.', retryable: true }),
          )
        }),
    }
    const { start, replays, clock } = recording({ model, retry: { maxAttempts: 2, baseMs: 10 } })
    const { runId, reason } = await waitUntilSettled(clock, start().result)
    expect([reason, asked]).toEqual(['model_failed', 2])
    await replays(runId)
  })
})
