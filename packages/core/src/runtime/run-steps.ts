import { type ModelRef, type Outcome, joinText } from '../events/content.ts'
import type { EventOf, EventType } from '../events/event.ts'
import { addUsage, type Usage } from '../events/usage.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ModelFailure } from '../values/errors.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'

export interface StepCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  /** How it ended; absent as long as it has not. */
  readonly outcome?: Outcome
}

/** A turn of a run: one model call, its retries included, and the tools that it asked for. */
export interface RunStep {
  readonly turn: number
  /** The agent whose turn it was. */
  readonly agent: string
  /** The model that was asked last. */
  readonly model: ModelRef
  readonly attempts: number
  readonly text: string
  readonly calls: readonly StepCall[]
  /** Of all its attempts. */
  readonly usage: Usage
  readonly costUsd?: number
  /** When it began and when its last event was recorded, in milliseconds since 1970 UTC. */
  readonly startedAt: number
  readonly endedAt: number
  /** How its last attempt failed, if it has no reply. */
  readonly failure?: ModelFailure
  /** The agent that took the conversation over at its end. */
  readonly handedTo?: string
}

/** The usage and cost of the attempts of a step, the last report of each. */
type Spent = Map<number, { readonly usage: Usage; readonly costUsd?: number | undefined }>

/** The turns of a run, read from its events. */
export async function readSteps(ledger: Ledger, runId: RunId): Promise<readonly RunStep[]> {
  const steps: RunStep[] = []
  let agent = ''
  let spent: Spent = new Map()
  for await (const event of ledger.read(runId)) {
    if (event.type === 'run_started') agent = event.agent
    if (event.type === 'model_call_started' && event.attempt === 1) {
      spent = new Map()
      const { turn, model, at } = event
      const empty = { attempts: 0, text: '', calls: [], usage: {} }
      steps.push({ turn, agent, model, ...empty, startedAt: at, endedAt: at })
    }
    const last = steps.at(-1)
    const change = changes[event.type] as Change<EventType> | null | undefined
    if (change && last && event.turn === last.turn)
      steps[steps.length - 1] = { ...change(last, event, spent), endedAt: event.at }
    if (event.type === 'agent_handed_off') agent = event.to
  }
  return steps
}

type Change<T extends EventType> = (step: RunStep, event: EventOf<T>, spent: Spent) => RunStep

/** The change that each event makes to its step; null if none. */
const changes: { readonly [T in EventType]: Change<T> | null } = {
  model_call_started: ({ failure: _failure, ...step }, { model, attempt }) => ({
    ...step,
    model,
    attempts: attempt,
  }),
  usage_updated: (step, { attempt, usage, costUsd }, spent) => {
    spent.set(attempt, { usage, costUsd })
    return { ...step, ...toTotal(spent) }
  },
  assistant_message_finished: (step, { parts }) => ({
    ...step,
    text: joinText(parts),
    calls: parts.flatMap((part) =>
      part.type === 'tool_call' ? [{ toolCallId: part.toolCallId, name: part.name }] : [],
    ),
  }),
  model_stream_failed: (step, { failure }) => ({ ...step, failure }),
  tool_result: (step, { toolCallId, outcome }) => ({
    ...step,
    calls: step.calls.map((call) => (call.toolCallId === toolCallId ? { ...call, outcome } : call)),
  }),
  background_ended: null,
  tool_results_injected: (step) => step,
  agent_handed_off: (step, { to }) => ({ ...step, handedTo: to }),
  run_started: null,
  schedule_set: null,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
  history_edited: null,
  run_resumed: null,
  run_finished: null,
  input_received: null,
  input_settled: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  tool_requests_collected: null,
  approval_requested: null,
  approval_added: null,
  approval_decided: null,
  approval_applied: null,
  approval_withdrawn: null,
  tool_started: null,
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  compaction_started: null,
  context_compacted: null,
  guardrail_tripped: null,
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: null,
  feedback_given: null,
}

function toTotal(spent: Spent): Pick<RunStep, 'usage' | 'costUsd'> {
  let total: Pick<RunStep, 'usage' | 'costUsd'> = { usage: {} }
  for (const { usage, costUsd } of spent.values()) {
    const sum = costUsd === undefined ? total.costUsd : (total.costUsd ?? 0) + costUsd
    total = { usage: addUsage(total.usage, usage), ...(sum !== undefined && { costUsd: sum }) }
  }
  return total
}
