import {
  checkCalls,
  decide,
  evolve,
  messagesOf,
  nextAction,
  present,
  type Agent,
  type Clock,
  type Command,
  type EventOf,
  type RunState,
  type RuntimeEvent,
  type Signal,
} from '@tallystick/core'

import { guardrailCause, isCallTrip, recordedCallGuardrails, summaryCause } from './replay-checks.ts'
import { modelCause } from './replay-model.ts'
import { toolCause } from './replay-tools.ts'
import type { Words } from './replay-words.ts'

type Message = Command | Signal

/** What the outside said, and when: milliseconds since 1970 UTC. */
export interface Cause {
  readonly message: Command | Signal
  readonly at: number
}

/** Where a replay stands, and what by. */
export interface ReplayPlace {
  readonly before: RunState | undefined
  readonly recorded: readonly RuntimeEvent[]
  /** The index of the next event. */
  readonly from: number
  readonly agent: Agent<unknown>
  readonly words: Words
}

/**
 * The commands and signals that the events from `from` on tell of, up to the first event that the machine made by
 * itself; none, when that one is the next. They count as one page: had the machine had anything to say between two of
 * them, it would stand there. Whether calls may run is asked of the agent's tools as they are now.
 */
export async function causesOf(place: ReplayPlace): Promise<readonly Cause[]> {
  const { before, recorded, from } = place
  const messages: Cause[] = []
  let state = before
  for (let index = from; index < recorded.length;) {
    const event = recorded[index] as RuntimeEvent
    // A take-over begins a page: what the process before it would have said next died with it.
    if (event.type === 'run_resumed' && index > from) break
    const message = await causeOf(state, event, place)
    if (message === undefined) break
    messages.push({ message, at: event.at })
    const decision = decide(state, message, { at: event.at, random: 0 })
    const facts = 'facts' in decision ? decision.facts.length : 0
    for (const fact of recorded.slice(index, index + Math.max(1, facts))) state = evolve(state, fact)
    index += Math.max(1, facts)
  }
  return messages
}

/** What the outside said that made this event, in this state; `undefined` where the machine made it by itself. */
async function causeOf(
  state: RunState | undefined,
  event: RuntimeEvent,
  place: ReplayPlace,
): Promise<Message | undefined> {
  const { recorded, agent, words } = place
  if (event.type === 'run_started') return startOf(event, place)
  if (state === undefined) return undefined
  if (event.type === 'run_resumed') {
    const { why, definition = state.definition } = event
    return { type: 'resume', why, definition: words(agent.definition, definition) }
  }
  if (event.type === 'tool_requests_collected' || isCallTrip(event)) {
    return await checkOf(state, event, recorded, agent)
  }
  return recordedCause(state, event, recorded)
}

/** The check of a reply's calls, made again; `undefined` where the machine settles them without asking. */
async function checkOf(
  state: RunState,
  event: RuntimeEvent,
  recorded: readonly RuntimeEvent[],
  agent: Agent<unknown>,
): Promise<Signal | undefined> {
  if (state.phase !== 'collecting' || nextAction(state, event.at).kind !== 'wait') return undefined
  const found: Signal[] = []
  const { runId, turn, calls, reply } = state
  const context = { runId, turn, agent: state.agent, messages: messagesOf(state.history), clock: noTimer }
  const { offered } = reply
  const guardrails = recordedCallGuardrails(recorded, event)
  await checkCalls(calls, { ...agent, guardrails }, { ...context, ...(offered && { offered }) }, (signal) =>
    found.push(signal),
  )
  return found[0]
}

/** Nothing that a replay asks may take time. */
const noTimer: Clock = { now: () => 0, schedule: () => () => {} }

function startOf(
  event: EventOf<'run_started'>,
  { recorded, agent, words }: Pick<ReplayPlace, 'recorded' | 'agent' | 'words'>,
): Command {
  const { runId, agent: name, limits, retry, sessionId, sessionPlace, parent } = event
  const past = recorded.slice(event.seq, event.seq + 3)
  const input = past.find((other) => other.type === 'input_received')
  const history = past.find((other) => other.type === 'history_carried')?.messages
  const edited = past.find((other) => other.type === 'history_edited')
  const edits = edited && { edits: edited.edits, ...present({ by: edited.by, reason: edited.reason }) }
  return {
    ...{ type: 'start', runId, agent: name, limits, retry },
    definition: words(agent.definition, event.definition),
    input: input?.message ?? { role: 'user', parts: [] },
    ...present({ sessionId, sessionPlace, parent, history, edits }),
  }
}

function recordedCause(
  state: RunState,
  event: RuntimeEvent,
  recorded: readonly RuntimeEvent[],
): Message | undefined {
  switch (event.type) {
    case 'assistant_started':
    case 'assistant_text_delta':
    case 'assistant_reasoning_delta':
    case 'tool_input_delta':
    case 'tool_request_ready':
    case 'usage_updated':
    case 'assistant_message_finished':
    case 'model_stream_failed':
      return modelCause(event, recorded)
    case 'input_received': {
      const { delivery, message, receipt = '' } = event
      return delivery === 'start' ? undefined : { type: delivery, message, receipt }
    }
    case 'tool_progress': {
      const { toolCallId, attempt, data } = event
      return { type: 'tool_progressed', toolCallId, attempt, data }
    }
    case 'tool_deferred': {
      const { toolCallId, attempt, receipt, deadlineAt = NaN } = event
      const deadlineMs = Number.isNaN(deadlineAt) ? undefined : deadlineAt - event.at
      return { type: 'tool_deferred', toolCallId, attempt, receipt, ...present({ deadlineMs }) }
    }
    case 'tool_started':
    case 'tool_result':
      return toolCause(state, event)
    case 'approval_decided': {
      const { toolCallId, by, approved, input, reason = '' } = event
      if (!approved) return { type: 'deny', toolCallId, by, reason }
      return { type: 'approve', toolCallId, by, ...present({ input }) }
    }
    case 'guardrail_tripped':
    case 'guardrails_checked':
      return guardrailCause(state, event, recorded)
    case 'output_checked': {
      const { valid, output = null, error = '', turn } = event
      const verdict = valid ? ({ valid, output } as const) : ({ valid, error } as const)
      return { type: 'output_checked', turn, verdict }
    }
    case 'context_compacted':
      return summaryCause(state, event)
    case 'cancel_requested': {
      const { by, reason } = event
      return { type: 'cancel', ...present({ by, reason }) }
    }
    case 'limit_raised': {
      const { limit, max, by } = event
      return { type: 'raise_limit', limit, max, by }
    }
    // The machine makes these by itself, or they begin a page and are looked at before.
    case 'run_started':
    case 'run_resumed':
    case 'run_finished':
    case 'history_carried':
    case 'history_edited':
    case 'input_settled':
    case 'model_call_started':
    case 'tool_requests_collected':
    case 'approval_requested':
    case 'tool_results_injected':
    case 'compaction_started':
    case 'agent_handed_off':
    case 'limit_reached':
      return undefined
  }
}
