import { type Phase, phases } from '@tallystick/core/internal'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  defineAgent,
  IllegalTransitionError,
  UnknownEventError,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  evolve,
  listLegalEvents,
  openTurnCalls,
  renderTransitionDiagram,
  transitionTable,
  type Call,
} from '@tallystick/core/machine'
import {
  defaultRetryPolicy,
  eventTypes,
  deriveToolCallId,
  type EventType,
  type Fact,
  type FactOf,
} from '@tallystick/core/vocabulary'
import { sampleFacts, scriptedModel, stampFacts, testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

/** Every state of a run that reads, asks a person, fails, tries again, pauses and answers. */
async function statesOfARun(): Promise<readonly RunState[]> {
  const retry = defaultRetryPolicy
  const look = testTool({ name: 'look', retry })
  const clerk = defineAgent({
    ...{ name: 'clerk', instructions: 'Help.', model: scriptedModel([{ text: 'Paid.' }]) },
  })
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const {
    start,
    waitUntilSettled: settle,
    eventsOf,
  } = stage({
    steps: [
      { text: 'Pausing.', stopReason: 'paused' },
      { text: 'Looking.', toolCalls: [{ name: 'look', input: {} }], fail: 'overloaded' },
      {
        text: 'Looking.',
        toolCalls: [
          { name: 'look', input: {} },
          { name: 'pay', input: {} },
        ],
      },
      { text: 'The clerk knows.', toolCalls: [{ name: 'transfer_to_clerk', input: {} }] },
    ],
    tools: [look, pay],
    handoffs: [clerk],
  })
  const run = start()
  const { pendingApprovals } = await settle(run.result)
  await settle(run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }))
  expect(await settle(run.result)).toMatchObject({ reason: 'answered', text: 'Paid.', toolCalls: 3 })
  const states: RunState[] = []
  for (const event of await eventsOf(run)) states.push(evolve(states.at(-1), event))
  return states.flatMap((state) => {
    if (state.phase === 'done') return [state]
    if (state.phase === 'idle') return [state, steered(state), scheduled(state)]
    return [state, steered(state), beside(state, 'started'), beside(state, 'in_doubt')]
  })
}

/** The state of a schedule that is due. */
function scheduled(state: RunState): RunState {
  const { scheduledAt: nextAt } = sampleFacts(state.runId).schedule_fired
  return { ...state, schedule: { everyMs: 60_000, missed: 'once', started: 0, nextAt } }
}

/** The state with a call that goes on in the background. */
function beside(state: RunState, status: 'started' | 'in_doubt'): RunState {
  const { runId, turn, agent } = state
  const toolCallId = deriveToolCallId(runId, 1, 9, 9)
  const asked = { toolCallId, part: 0, providerCallId: 'p', name: 'look', input: {}, attempts: 1 }
  return { ...state, background: [{ ...asked, status, turn, agent, background: 'wait' }] }
}

/** The state with input that waits for its place. */
function steered(state: RunState): RunState {
  const sample = sampleFacts(state.runId).input_received
  const fact = { ...sample, turn: state.turn, delivery: 'steer' as const, receipt: 'receipt-1' }
  const [event] = stampFacts(state.runId, [fact], { afterSeq: state.seq, epoch: state.epoch })
  return evolve(state, event!)
}

const perCall = (state: RunState, fact: (call: Call) => Fact): readonly Fact[] =>
  [...openTurnCalls(state), ...(state.background ?? [])].map(fact)

/** For event types whose content depends on what came before: the facts that could fit a state. */
const fits: { readonly [T in EventType]?: (state: RunState, sample: FactOf<T>) => readonly Fact[] } = {
  history_edited: (state, sample) => [{ ...sample, turn: state.turn, edits: [] }],
  compaction_started: (state, sample) => [{ ...sample, turn: state.turn, replacedMessages: 0 }],
  context_compacted: (state, { taskAt: _replacedNow, ...sample }) => [
    { ...sample, turn: state.turn, replacedMessages: 0 },
  ],
  guardrail_tripped: (state, sample) => [{ ...sample, turn: state.turn, action: 'record' }],
  guardrails_checked: (state, sample) => [{ ...sample, turn: state.turn, on: 'input' }],
  agent_handed_off: (state, sample) => [
    { ...sample, turn: state.turn, from: state.agent, to: 'clerk', messages: [] },
  ],
  model_call_started: (state, sample) => [
    { ...sample, turn: state.turn + 1, attempt: 1 },
    { ...sample, turn: state.turn, attempt: attemptOf(state) + 1 },
  ],
  assistant_message_finished: (state, sample) => {
    const parts = openTurnCalls(state).map((call) => ({ ...call, type: 'tool_call' as const }))
    return [{ ...sample, turn: state.turn, attempt: attemptOf(state), parts }]
  },
  tool_request_ready: (state, sample) => {
    const { runId, turn } = state
    const attempt = attemptOf(state)
    return [{ ...sample, turn, attempt, part: 9, toolCallId: deriveToolCallId(runId, turn, attempt, 9) }]
  },
  tool_requests_collected: (state) => {
    const calls = openTurnCalls(state).map(({ toolCallId, name }) => {
      return { toolCallId, name, plan: 'run' as const, inputDigest: 'd' }
    })
    return [{ type: 'tool_requests_collected', turn: state.turn, calls }]
  },
  approval_requested: (state, sample) =>
    perCall(state, ({ toolCallId, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts + 1 }
    }),
  approval_added: (state, sample) =>
    perCall(state, ({ toolCallId, attempts, inputDigest = 'd' }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts + 1, inputDigest }
    }),
  approval_decided: (state, sample) =>
    perCall(state, ({ toolCallId, attempts, inputDigest = 'd' }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts + 1, inputDigest }
    }),
  approval_applied: (state, sample) =>
    perCall(state, ({ toolCallId, attempts, inputDigest = 'd' }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts + 1, inputDigest }
    }),
  tool_started: (state, sample) =>
    perCall(state, ({ toolCallId, name, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, name, attempt: attempts + 1 }
    }),
  tool_progress: (state, sample) =>
    perCall(state, ({ toolCallId, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts }
    }),
  tool_deferred: (state, sample) =>
    perCall(state, ({ toolCallId, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, attempt: attempts }
    }),
  tool_attempt_failed: (state, sample) =>
    perCall(state, ({ toolCallId, name, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, name, attempt: attempts }
    }),
  tool_result: (state, sample) =>
    perCall(state, ({ toolCallId, name }) => {
      return { ...sample, turn: state.turn, toolCallId, name, outcome: 'cancelled' }
    }),
  background_ended: (state, sample) =>
    perCall(state, ({ toolCallId, name, attempts }) => {
      return { ...sample, turn: state.turn, toolCallId, name, attempt: attempts }
    }),
  tool_results_injected: (state, sample) => {
    return [{ ...sample, turn: state.turn, toolCallIds: openTurnCalls(state).map((call) => call.toolCallId) }]
  },
}

function attemptOf(state: RunState): number {
  return state.phase === 'streaming' ? state.attempt.number : 1
}

/** Events of a type that are made to fit a state: what a faultless writer could append there, if anything. */
function fitting(state: RunState, type: EventType): readonly RuntimeEvent[] {
  const sample = sampleFacts(state.runId)[type]
  const plain = { ...sample, turn: state.turn, ...('attempt' in sample && { attempt: attemptOf(state) }) }
  const facts = fits[type]?.(state, sample as never) ?? [plain]
  return facts.flatMap((fact) => stampFacts(state.runId, [fact], { afterSeq: state.seq, epoch: state.epoch }))
}

/** The phase that an event leads to, or the error that it is refused with. */
function phaseAfter(state: RunState, event: RuntimeEvent): Phase | IllegalTransitionError {
  try {
    return evolve(state, event).phase
  } catch (error) {
    if (error instanceof IllegalTransitionError) return error
    throw error
  }
}

describe('the transition table', () => {
  let states: readonly RunState[] = []
  beforeAll(async () => {
    states = await statesOfARun()
  })

  const inPhase = (phase: Phase): readonly RunState[] => states.filter((state) => state.phase === phase)
  const pairs = phases.flatMap((phase) => eventTypes.map((type) => ({ phase, type })))
  const legal = pairs.filter(({ phase, type }) => transitionTable[phase][type] !== undefined)
  const illegal = pairs.filter(({ phase, type }) => transitionTable[phase][type] === undefined)

  it('is tried on states of every phase', () => {
    expect(new Set(states.map(({ phase }) => phase))).toEqual(new Set(phases))
    expect(legal.length + illegal.length).toBe(phases.length * eventTypes.length)
  })

  it.each(legal)('$phase: $type leads where the table says', ({ phase, type }) => {
    const tries = inPhase(phase).flatMap((state) =>
      fitting(state, type).map((event) => phaseAfter(state, event)),
    )
    const reached = tries.filter((outcome) => !(outcome instanceof IllegalTransitionError))
    expect(new Set(reached)).toEqual(new Set([transitionTable[phase][type]]))
  })

  it.each(illegal)('$phase: $type is refused, and what would be legal is named', ({ phase, type }) => {
    for (const state of inPhase(phase)) {
      const events = fitting(state, type)
      const bare = { ...stampFacts(state.runId, [sampleFacts(state.runId)[type]])[0]!, seq: state.seq + 1 }
      for (const event of [bare, ...events]) {
        const refusal = phaseAfter(state, event) as IllegalTransitionError
        expect(refusal).toMatchObject({ code: 'illegal_transition', phase, event: type })
        expect(refusal.legal).toEqual(listLegalEvents(phase))
        const wouldBe = listLegalEvents(phase).join(', ')
        expect(refusal.message).toContain(
          `The event ${type} is not legal in the phase ${phase}. Legal would be: ${wouldBe}. `,
        )
      }
    }
  })

  it('begins with run_started and nothing else', () => {
    const { runId } = states[0]!
    const facts = sampleFacts(runId)
    const others = eventTypes.filter((type) => type !== 'run_started')
    const first = (type: EventType): RuntimeEvent => stampFacts(runId, [facts[type]])[0]!
    expect(evolve(undefined, first('run_started')).phase).toBe('idle')
    expect(() => evolve(undefined, { ...first('run_started'), seq: 2 })).toThrow('at seq 2')
    for (const type of others) {
      expect(() => evolve(undefined, first(type))).toThrow(
        `The event ${type} is not legal in the phase (nothing): at seq 1. Legal would be: run_started.`,
      )
    }
  })

  it('allows only feedback once the run is done', () => {
    expect(listLegalEvents('done')).toEqual(['feedback_given'])
  })

  it('refuses names that every object answers to', () => {
    const event = {
      ...fitting(states[0]!, 'cancel_requested')[0]!,
      type: 'constructor',
    } as unknown as RuntimeEvent
    expect(() => evolve(states[0], event)).toThrow(UnknownEventError)
  })

  it('is drawn as a diagram of the ways between phases', () => {
    expect(renderTransitionDiagram()).toBe(
      [
        'stateDiagram-v2',
        '  direction LR',
        '  [*] --> idle: run_started',
        '  idle --> streaming: model_call_started',
        '  idle --> done: run_finished',
        '  streaming --> collecting: assistant_message_finished',
        '  streaming --> done: run_finished',
        '  collecting --> executing: tool_requests_collected',
        '  collecting --> streaming: model_call_started',
        '  collecting --> done: run_finished',
        '  executing --> injecting: tool_results_injected',
        '  injecting --> streaming: model_call_started',
        '  injecting --> done: run_finished',
        '  done --> [*]',
      ].join('\n'),
    )
  })
})
