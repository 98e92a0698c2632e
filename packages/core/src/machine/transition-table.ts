import type { EventType } from '../events/event.ts'
import { type Phase, phases, type RunState } from './state.ts'
import { IllegalTransitionError } from '../values/errors.ts'

type Row = { readonly [T in EventType]?: Phase }

/** Legal in every phase but `done`, and without effect on the phase. */
function allowAnywhere(phase: Phase): Row {
  return {
    run_resumed: phase,
    cancel_requested: phase,
    limit_reached: phase,
    limit_raised: phase,
    guardrail_tripped: phase,
    guardrails_checked: phase,
    usage_updated: phase,
    input_received: phase,
    input_settled: phase,
    approval_withdrawn: phase,
  }
}

/** Legal for calls that go on beside the run, whatever that does; without effect on the phase. */
function allowBackground(phase: Phase): Row {
  return { tool_started: phase, tool_progress: phase, background_ended: phase }
}

/**
 * THE TRANSITION TABLE: which event is legal in which phase, and the phase that it leads to. `run_started` comes
 * before every phase: it is the only legal first event and leads to `idle`. The runtime, the diagram in
 * ARCHITECTURE.md and the tests all read this table.
 */
export const transitionTable: { readonly [P in Phase]: Row } = {
  idle: {
    ...allowAnywhere('idle'),
    schedule_set: 'idle',
    schedule_fired: 'idle',
    history_carried: 'idle',
    history_edited: 'idle',
    session_edited: 'idle',
    compaction_started: 'idle',
    context_compacted: 'idle',
    model_call_started: 'streaming',
    run_finished: 'done',
  },
  streaming: {
    ...allowAnywhere('streaming'),
    ...allowBackground('streaming'),
    assistant_started: 'streaming',
    assistant_text_delta: 'streaming',
    assistant_reasoning_delta: 'streaming',
    tool_input_delta: 'streaming',
    tool_request_ready: 'streaming',
    model_stream_failed: 'streaming',
    tool_result: 'streaming',
    compaction_started: 'streaming',
    context_compacted: 'streaming',
    model_call_started: 'streaming',
    assistant_message_finished: 'collecting',
    run_finished: 'done',
  },
  collecting: {
    ...allowAnywhere('collecting'),
    ...allowBackground('collecting'),
    history_edited: 'collecting',
    output_checked: 'collecting',
    compaction_started: 'collecting',
    context_compacted: 'collecting',
    tool_requests_collected: 'executing',
    model_call_started: 'streaming',
    run_finished: 'done',
  },
  executing: {
    ...allowAnywhere('executing'),
    ...allowBackground('executing'),
    approval_requested: 'executing',
    approval_added: 'executing',
    approval_decided: 'executing',
    approval_applied: 'executing',
    tool_deferred: 'executing',
    tool_attempt_failed: 'executing',
    tool_result: 'executing',
    tool_results_injected: 'injecting',
  },
  injecting: {
    ...allowAnywhere('injecting'),
    ...allowBackground('injecting'),
    history_edited: 'injecting',
    compaction_started: 'injecting',
    context_compacted: 'injecting',
    agent_handed_off: 'injecting',
    model_call_started: 'streaming',
    run_finished: 'done',
  },
  done: { feedback_given: 'done' },
}

/** The event types that are legal in a phase, in the table's order. */
export function listLegalEvents(phase: Phase): readonly EventType[] {
  return Object.keys(transitionTable[phase]) as EventType[]
}

/** The table as a Mermaid state diagram. Events that keep the phase are left out: the table itself lists them. */
export function renderTransitionDiagram(): string {
  const lines = ['stateDiagram-v2', '  direction LR', '  [*] --> idle: run_started']
  for (const from of phases) {
    for (const type of listLegalEvents(from)) {
      const to = transitionTable[from][type]
      if (to !== undefined && to !== from) lines.push(`  ${from} --> ${to}: ${type}`)
    }
  }
  lines.push('  done --> [*]')
  return lines.join('\n')
}

/** Refuses an event, saying why. */
export function createIllegalTransition(
  state: RunState,
  event: { readonly type: EventType },
  detail?: string,
): IllegalTransitionError {
  return new IllegalTransitionError(state.phase, event.type, listLegalEvents(state.phase), detail)
}
