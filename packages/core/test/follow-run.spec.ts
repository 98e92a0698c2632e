import {
  LedgerConflictError,
  memoryLedger,
  type RunState,
  createRuntime,
  defineAgent,
  type Ledger,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import { evolve, audit, serializeState } from '@tallystick/core/machine'
import type { CallVerdict, Fact, Signal, ToolSignal } from '@tallystick/core/vocabulary'
import {
  sampleFacts,
  manualClock,
  sampleRunId,
  stampFacts,
  testTool,
  scriptedModel,
  given,
} from '@tallystick/testkit'
import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { CallStatus, ExecutingState } from '../src/machine/state.ts'
import { Effects } from '../src/runtime/effects.ts'
import { waitUntilEnded, waitForInput, waitUntilStopped } from '../src/runtime/follow-run.ts'
import type { RunContext } from '../src/runtime/run-context.ts'
import { foldFollowed, loadState } from '../src/runtime/run-result.ts'
import type { RuntimeParts } from '../src/runtime/runtime-parts.ts'
import { begun, called, collected, executing, replyFinished, requested } from './pages.ts'
import { ofType, recorded, stage } from './stage.ts'

// How long a reader waits for a run of another process, and how often it looks.

const runId = sampleRunId(1)
const { run_started, input_received: input, run_finished } = sampleFacts(runId)
const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
const { costUsd: _cost, ...finished } = run_finished
const end = { ...finished, turn: 0, turns: 0, toolCalls: 0, usage: {} } as const
const steer = (receipt: string) => ({ ...input, delivery: 'steer', receipt }) as const

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 40; turn++) await Promise.resolve()
}

/** A run on record that another process drives, or not, and a reader that waits for it. */
async function following(
  options: {
    readonly driven?: () => boolean
    readonly wait?: (from: RunState, parts: RuntimeParts) => Promise<unknown>
  } = {},
) {
  const { driven = () => true, wait = waitUntilEnded } = options
  const ledger = memoryLedger()
  let seq = 0
  let isDrained = false
  const append = async (...facts: Parameters<typeof stampFacts>[1]): Promise<void> => {
    const events = stampFacts(runId, facts, { afterSeq: seq })
    await ledger.append(runId, { expectedSeq: seq, epoch: 1 }, events, { durability: 'lazy' })
    seq += events.length
    await turns()
  }
  await append(start, input)
  const state = (await recorded(ledger, runId)).reduce<RunState | undefined>(evolve, undefined) as RunState
  const clock = manualClock()
  const begun = clock.now()
  const looks: number[] = []
  const runs = {
    isDriven: async () => {
      looks.push(clock.now() - begun)
      return driven()
    },
    get isDrained() {
      return isDrained
    },
  }
  let ending: unknown = 'waits'
  wait(state, { ledger, host: { clock }, runs } as unknown as RuntimeParts).then(
    (found) => (ending = found),
    (error: unknown) => (ending = error),
  )
  await turns()
  return {
    ...{ append, looks, clock, ledger },
    ending: () => ending,
    drain: () => (isDrained = true),
    pass: async (ms: number, step = 500) => {
      for (let passed = 0; passed < ms; passed += step) {
        clock.advance(Math.min(step, ms - passed))
        await turns()
      }
    },
  }
}

describe('a reader that waits for a run', () => {
  it('looks every second, however long nothing is recorded of a run that is driven', async () => {
    const { looks, pass, ending } = await following()
    expect(looks).toEqual([0])
    await pass(5_000)
    expect(looks).toEqual([0, 1_000, 2_000, 3_000, 4_000, 5_000])
    await pass(3_600_000, 60_000)
    expect(ending()).toBe('waits')
  })

  it('has the state in which the run has ended', async () => {
    const { append, ending } = await following()
    await append(end)
    expect(ending()).toMatchObject({ runId, seq: 3, phase: 'done' })
  })

  it('gives up at once where no process drives the run, once it has looked again', async () => {
    const { looks, ending } = await following({ driven: () => false })
    expect(looks).toEqual([0, 0])
    expect(ending()).toMatchObject({ kind: 'session', busy: { status: 'interrupted' } })
  })

  it('does not give up where the run has ended between two looks', async () => {
    const bed: { append?: (...facts: Parameters<typeof stampFacts>[1]) => Promise<void> } = {}
    let asked = 0
    const { append, ending, pass } = await following({
      driven: () => {
        if (asked++ === 1) void bed.append?.(end)
        return asked < 2
      },
    })
    bed.append = append
    await pass(1_000)
    expect(asked).toBe(2)
    expect(ending()).toMatchObject({ phase: 'done' })
  })

  it('gives up where its runtime is drained', async () => {
    const { drain, pass, ending } = await following()
    drain()
    await pass(1_000)
    expect(ending()).toBeInstanceOf(LedgerConflictError)
    expect(String(ending())).toContain('drained')
  })
})

describe('a reader that waits until its input is taken', () => {
  const taken = (from: RunState, parts: RuntimeParts) => waitForInput(from, parts, 'r2')
  const settled = (delivered: boolean, receipt = 'r2') =>
    ({ ...sampleFacts(runId).input_settled, turn: 0, receipt, delivered }) as const

  it('is answered when the run has shown it, or ended without', async () => {
    const other = await following({ wait: taken })
    await other.append(steer('r3'))
    expect(other.ending()).toBe('waits')
    await other.append(steer('r2'))
    expect(other.ending()).toBe('waits')
    await other.append(settled(false, 'r3'))
    expect(other.ending()).toBe('waits')
    await other.append(settled(true))
    expect(other.ending()).toMatchObject({ shown: true, state: { runId } })
    const refused = await following({ wait: taken })
    await refused.append(steer('r2'), settled(false))
    expect(refused.ending()).toBeUndefined()
    const ended = await following({ wait: taken })
    await ended.append(end)
    expect(ended.ending()).toBeUndefined()
  })
})

describe('a reader that waits until a run stops', () => {
  it('has every event, and the state in which the run waits for a person', async () => {
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const set = stage({ steps: [{ toolCalls: [{ name: 'pay', input: {} }] }], tools: [pay] })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    const events = await set.eventsOf(run)
    const from = events.slice(0, 2).reduce<RunState | undefined>(evolve, undefined) as RunState
    const runs = { isDriven: async () => false, isDrained: false }
    const seen: number[] = []
    const parts = { ledger: set.ledger, host: { clock: set.clock }, runs } as unknown as RuntimeParts
    const state = await waitUntilStopped(from, parts, ({ seq }) => seen.push(seq))
    expect(state.seq).toBe(events.length)
    expect(seen).toEqual(events.slice(2).map(({ seq }) => seq))
    expect(ofType(events, 'run_finished')).toEqual([])
    // A run that waits is not interrupted, though no process drives it: a reader that waits for its end continues to wait.
    let ending: unknown = 'waits'
    void waitUntilEnded(state, parts).catch((error: unknown) => (ending = error))
    for (let second = 0; second < 4; second++) {
      await turns()
      set.clock.advance(1_000)
    }
    expect(ending).toBe('waits')
  })
})

/** A run of an agent that calls a tool so often at once, up to its end. */
async function record(calls: number, ledger: Ledger = memoryLedger()): Promise<readonly RuntimeEvent[]> {
  const agent = agentThatCalls(calls)
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Which colour?')
  await run.result
  return await Array.fromAsync(ledger.read(run.id))
}

function agentThatCalls(calls: number) {
  const toolCalls = Array.from({ length: calls }, (_, at) => ({ name: 'look', input: { at } }))
  return defineAgent({
    name: 'painter',
    instructions: 'Look.',
    tools: [testTool({ name: 'look', run: () => 'Blue.' })],
    model: scriptedModel([{ toolCalls }, { text: 'Blue.' }]),
  })
}

const fold = (events: readonly RuntimeEvent[]): RunState =>
  events.reduce<RunState | undefined>(evolve, undefined)!

it('a run is read anew after a take-over, since its store may have lost power and events that were followed', async () => {
  const followed = await record(1)
  const { runId } = followed[0]!
  const started = followed.findIndex(({ type }) => type === 'tool_started') + 1
  const known = fold(followed.slice(0, started))

  // Four events are left in the store; another process took the run over there, and wrote others after them.
  const ledger = memoryLedger()
  await ledger.append(runId, { epoch: 1, expectedSeq: 0 }, followed.slice(0, 4), { durability: 'barrier' })
  await createRuntime({ ledger, agents: [agentThatCalls(6)] }).resume(runId).result
  const [next] = await Array.fromAsync(ledger.read(runId, { fromSeq: known.seq + 1 }))

  expect(() => audit(known, next!)).toThrow('not legal in the phase executing')
  const state = await foldFollowed(ledger, known, next!)
  expect(serializeState(state)).toEqual(serializeState((await loadState(ledger, runId))!))
  // What is part of it already changes nothing.
  expect(await foldFollowed(ledger, state, next!)).toBe(state)
})

/** The effects of an agent with one tool, which post to this list. */
function effectsWith(tool: Tool, posted: Signal[] = []): Effects {
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: scriptedModel([]), tools: [tool] })
  return new Effects({
    findAgent: () => agent,
    findModel: () => undefined,
    host: { clock: manualClock(), random: () => 0, report: () => {} },
    state: undefined,
    context: undefined,
    results: undefined,
    post: (signal: Signal) => posted.push(signal),
    onFault: () => {},
  } as unknown as RunContext)
}

/** Effects of a turn with three calls, whose tools run until they are given up. */
function followed() {
  const running = new Set<string>()
  const started: string[] = []
  const endless = (toolCallId: string): Observable<ToolSignal> =>
    new Observable(() => {
      running.add(toolCallId)
      started.push(toolCallId)
      return () => void running.delete(toolCallId)
    })
  const tool = {
    ...testTool({ name: 'look' }),
    run: (call: { toolCallId: string }) => endless(call.toolCallId),
  }
  const effects = effectsWith(tool)
  const state = given(executing(['look', 'look', 'look'])).state as ExecutingState
  const follow = (...statuses: readonly CallStatus[]): readonly boolean[] => {
    const calls = state.calls.map((call, place) => {
      const status = statuses[place] as CallStatus
      return { ...call, status, attempts: status === 'ready' ? 0 : 1 }
    })
    effects.follow({ ...state, calls }, { draining: false })
    return calls.map(({ toolCallId }) => running.has(toolCallId))
  }
  return { follow, started, effects }
}

describe('the effects of a turn with several calls', () => {
  it('begin with a call, end with it, and leave the others as they are', () => {
    const { follow, started, effects } = followed()
    expect(follow('started', 'ready', 'ready')).toEqual([true, false, false])
    expect(follow('started', 'started', 'ready')).toEqual([true, true, false])
    expect(follow('settled', 'started', 'ready')).toEqual([false, true, false])
    expect(follow('settled', 'deferred', 'started')).toEqual([false, false, true])
    expect(follow('settled', 'deferred', 'started')).toEqual([false, false, true])
    expect(follow('settled', 'settled', 'settled')).toEqual([false, false, false])
    expect(started).toHaveLength(3)
    effects.stopAll()
  })

  it('are given up all at once', () => {
    const { follow, effects } = followed()
    follow('started', 'ready', 'ready')
    follow('started', 'started', 'started')
    effects.stopAll()
    expect(follow('started', 'started', 'started')).toEqual([false, false, false])
  })

  it('report nothing once they are given up: a check that ends late', async () => {
    const calls = [requested(1)]
    const reply = [...begun(), called(), ...calls, replyFinished(calls)]
    const checked = async (facts: readonly Fact[]): Promise<readonly string[]> => {
      const posted: Signal[] = []
      const { promise, resolve } = Promise.withResolvers<CallVerdict>()
      const effects = effectsWith(testTool({ name: 'look', check: () => promise }), posted)
      effects.follow(given(reply).state!, { draining: false })
      effects.follow(given([...reply, ...facts]).state!, { draining: false })
      resolve({ kind: 'run' })
      for (let turn = 0; turn < 50; turn++) await Promise.resolve()
      return posted.map(({ type }) => type)
    }
    expect(await checked([])).toEqual(['calls_checked'])
    expect(await checked([collected(calls)])).toEqual([])
  })
})
