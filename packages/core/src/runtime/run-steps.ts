import { type ModelRef, type Outcome, textOf } from '../events/content.ts'
import type { EventOf, EventType, RuntimeEvent } from '../events/event.ts'
import { addUsage, type Usage } from '../events/usage.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ModelFailure } from '../values/errors.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'

/** A tool call of a step. */
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
  /** The text of the reply. */
  readonly text: string
  readonly calls: readonly StepCall[]
  /** Of all its attempts. */
  readonly usage: Usage
  readonly costUsd?: number
  /** When it began and when its last event was recorded, in milliseconds since 1970 UTC. */
  readonly startedAt: number
  readonly endedAt: number
  /** How its last attempt failed, where it has no reply. */
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
      steps.push(begun(event, agent))
    }
    const last = steps.at(-1)
    if (last && event.turn === last.turn) steps[steps.length - 1] = withEvent(last, event, spent)
    if (event.type === 'agent_handed_off') agent = event.to
  }
  return steps
}

function begun(
  { turn, model, at }: Extract<RuntimeEvent, { type: 'model_call_started' }>,
  agent: string,
): RunStep {
  return { turn, agent, model, attempts: 0, text: '', calls: [], usage: {}, startedAt: at, endedAt: at }
}

function withEvent(step: RunStep, event: RuntimeEvent, spent: Spent): RunStep {
  const changed = changes[event.type] as Change<EventType> | null | undefined
  return changed ? { ...changed(step, event, spent), endedAt: event.at } : step
}

type Change<T extends EventType> = (step: RunStep, event: EventOf<T>, spent: Spent) => RunStep

/** The change that each event makes to its step; null if none. */
const changes: { readonly [T in EventType]: Change<T> | null } = {
  model_call_started: (step, { model, attempt }) => ({ ...withoutFailure(step), model, attempts: attempt }),
  usage_updated: (step, { attempt, usage, costUsd }, spent) => {
    spent.set(attempt, { usage, costUsd })
    return { ...step, ...totalOf(spent) }
  },
  assistant_message_finished: (step, { parts }) => ({ ...step, text: textOf(parts), calls: callsIn(parts) }),
  model_stream_failed: (step, { failure }) => ({ ...step, failure }),
  tool_result: (step, event) => ({ ...step, calls: withOutcome(step.calls, event) }),
  tool_results_injected: (step) => step,
  agent_handed_off: (step, { to }) => ({ ...step, handedTo: to }),
  run_started: null,
  history_carried: null,
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
  approval_decided: null,
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
}

function withoutFailure({ failure: _failure, ...step }: RunStep): RunStep {
  return step
}

function totalOf(spent: Spent): Pick<RunStep, 'usage' | 'costUsd'> {
  let total: Pick<RunStep, 'usage' | 'costUsd'> = { usage: {} }
  for (const { usage, costUsd } of spent.values()) {
    const sum = costUsd === undefined ? total.costUsd : (total.costUsd ?? 0) + costUsd
    total = { usage: addUsage(total.usage, usage), ...(sum !== undefined && { costUsd: sum }) }
  }
  return total
}

function callsIn(
  parts: Extract<RuntimeEvent, { type: 'assistant_message_finished' }>['parts'],
): readonly StepCall[] {
  return parts.flatMap((part) =>
    part.type === 'tool_call' ? [{ toolCallId: part.toolCallId, name: part.name }] : [],
  )
}

function withOutcome(
  calls: readonly StepCall[],
  { toolCallId, outcome }: Extract<RuntimeEvent, { type: 'tool_result' }>,
): readonly StepCall[] {
  return calls.map((call) => (call.toolCallId === toolCallId ? { ...call, outcome } : call))
}
