import { NEVER } from 'rxjs'
import { expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  type Limits,
  memoryLedger,
  type RunResult,
  type Tool,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

interface Played {
  readonly status: RunResult['status']
  readonly reason: RunResult['reason']
  readonly modelCalls: number
  /** The outcomes of the calls, without repetitions. */
  readonly outcomes: readonly string[]
  /** The most reads at work at once. */
  readonly atOnce: number
  /** The time from the first event to the last. */
  readonly ms: number
}

/**
 * Plays a run: two turns, each with two equal reads that take a second; a call that a person decides about after an hour; and
 * a call that hears no cancel, during which the run is cancelled.
 */
async function playWithin(limits: Limits): Promise<Played> {
  const clock = manualClock()
  const pass = (ms: number): Promise<void> => new Promise((resolve) => clock.schedule(ms, resolve))
  let [now, atOnce] = [0, 0]
  const look = testTool({
    name: 'look',
    async run() {
      atOnce = Math.max(atOnce, ++now)
      await pass(1_000)
      now--
      return 'blue'
    },
  })
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const deaf = testTool({ name: 'deaf', effect: 'write', run: () => new Promise<string>(() => {}) })
  const tools = [
    look,
    pay,
    { ...deaf, run: (call) => deaf.run({ ...call, cancelled$: NEVER }) } satisfies Tool,
  ]
  const replies = [['look', 'look'], ['look', 'look'], ['pay'], ['deaf']]
  const usage = { inputTokens: 10, outputTokens: 10 }
  const model = scriptedModel(
    replies.map((names) => ({ toolCalls: names.map((name) => ({ name, input: {} })), usage })),
  )
  const agent = defineAgent({ name: 'agent', instructions: '', model, tools, limits })
  const ledger = memoryLedger({ clock })
  const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 1 } }
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock }, prices })
  const run = runtime.run(agent, 'Go.')
  run.events$.subscribe((event) => {
    if (event.type === 'tool_started' && event.name === 'deaf') void run.cancel('Enough.')
  })
  let rest: RunResult = await waitUntilSettled(clock, run.result)
  const asked = rest.pendingApprovals[0]?.toolCallId
  if (asked !== undefined) {
    await waitUntilSettled(clock, pass(3_600_000))
    await waitUntilSettled(clock, run.approve(asked, { by: 'ada' }))
    rest = await waitUntilSettled(clock, runtime.resume(run.id).result)
  }
  const events = checkedRun(await recorded(ledger, run.id))
  return {
    ...{ status: rest.status, reason: rest.reason, atOnce },
    modelCalls: ofType(events, 'model_call_started').length,
    outcomes: [...new Set(ofType(events, 'tool_result').map(({ outcome }) => outcome))],
    ms: events.at(-1)!.at - events[0]!.at,
  }
}

const wide: Limits = { maxRepeats: 9, onLimit: 'stop' }
const unlimited: Played = {
  ...{ status: 'done', reason: 'cancelled', modelCalls: 4, outcomes: ['success', 'cancelled'], atOnce: 2 },
  ms: 2_000 + 3_600_000 + 2_000,
}

/** What each limit changes in that run. */
const changes: { readonly [L in keyof Limits]-?: readonly [Limits, Partial<Played>] } = {
  maxTurns: [{ maxTurns: 1 }, { reason: 'turn_limit', modelCalls: 1 }],
  maxToolCalls: [{ maxToolCalls: 3 }, { reason: 'tool_call_limit', modelCalls: 2 }],
  maxToolCallsPerTurn: [
    { maxToolCallsPerTurn: 1 },
    { atOnce: 1, outcomes: ['limit_reached', 'success', 'cancelled'] },
  ],
  maxCallsByTool: [
    { maxCallsByTool: { look: 2 } },
    { outcomes: ['success', 'limit_reached', 'cancelled'], ms: unlimited.ms - 1_000 },
  ],
  maxTotalTokens: [{ maxTotalTokens: 60 }, { reason: 'token_limit' }],
  maxTotalInputTokens: [{ maxTotalInputTokens: 30 }, { reason: 'token_limit' }],
  maxTotalOutputTokens: [{ maxTotalOutputTokens: 30 }, { reason: 'token_limit' }],
  maxCostUsd: [{ maxCostUsd: 0.000_05 }, { reason: 'cost_limit' }],
  maxDurationMs: [{ maxDurationMs: 1_500 }, { reason: 'time_limit', ms: 1_500 }],
  maxRepeats: [{ maxRepeats: 1 }, { reason: 'repeat_limit', atOnce: 1 }],
  maxConcurrency: [{ maxConcurrency: 1 }, { atOnce: 1, ms: unlimited.ms + 2_000 }],
  maxApprovalMs: [{ maxApprovalMs: 1_000 }, { outcomes: ['success', 'denied', 'cancelled'] }],
  graceMs: [{ graceMs: 100 }, { ms: unlimited.ms - 1_900 }],
  onLimit: [
    { maxTurns: 1, onLimit: 'ask' },
    { status: 'suspended', reason: undefined, modelCalls: 1 },
  ],
}

it('a run without a limit goes on to its last call', async () => {
  expect(await playWithin(wide)).toEqual(unlimited)
})

it.each(Object.entries(changes))('%s is enforced', async (_name, [limits, seen]) => {
  const played = await playWithin({ ...wide, ...limits })
  expect(played).toMatchObject(seen)
  expect(played).not.toEqual(unlimited)
})
