import {
  checkCalls,
  decide,
  evolve,
  findCall,
  messagesOf,
  nextAction,
  present,
  type Agent,
  type AgentDefinition,
  type Call,
  type Clock,
  type Command,
  type EventOf,
  type Reconciliation,
  type ReplyPart,
  type RunState,
  type RuntimeEvent,
  type Signal,
} from '@tallystick/core'

import { guardrailCause, isCallTrip, recordedCallGuardrails, summaryCause } from './replay-checks.ts'

type Message = Command | Signal

/**
 * The commands and signals that the events from `from` on tell of, up to the first event that the machine made by
 * itself; none, when that one is the next. They count as one page: had the machine had anything to say between two of
 * them, it would stand there. Whether calls may run is asked of the agent's tools as they are now.
 */
export async function causesOf(
  before: RunState | undefined,
  recorded: readonly RuntimeEvent[],
  from: number,
  agent: Agent<unknown>,
): Promise<readonly Message[]> {
  const messages: Message[] = []
  let state = before
  for (let index = from; index < recorded.length;) {
    const event = recorded[index] as RuntimeEvent
    // A take-over begins a page: what the process before it would have said next died with it.
    if (event.type === 'run_resumed' && index > from) break
    const message = await causeOf(state, event, recorded, agent)
    if (message === undefined) break
    messages.push(message)
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
  recorded: readonly RuntimeEvent[],
  agent: Agent<unknown>,
): Promise<Message | undefined> {
  if (event.type === 'run_started') return startOf(event, recorded, agent)
  if (state === undefined) return undefined
  if (event.type === 'run_resumed') {
    return {
      type: 'resume',
      why: event.why,
      definition: pricedAsRecorded(agent.definition, event.definition),
    }
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
  recorded: readonly RuntimeEvent[],
  agent: Agent<unknown>,
): Command {
  const { runId, agent: name, limits, retry, sessionId, sessionPlace, parent } = event
  const past = recorded.slice(event.seq, event.seq + 3)
  const input = past.find((other) => other.type === 'input_received')
  const history = past.find((other) => other.type === 'history_carried')?.messages
  const edited = past.find((other) => other.type === 'history_edited')
  const edits = edited && { edits: edited.edits, ...present({ by: edited.by, reason: edited.reason }) }
  return {
    ...{ type: 'start', runId, agent: name, limits, retry },
    definition: pricedAsRecorded(agent.definition, event.definition),
    input: input?.message ?? { role: 'user', parts: [] },
    ...present({ sessionId, sessionPlace, parent, history, edits }),
  }
}

/** What the agent's code says now, at the prices of then: a cost is never computed again. */
function pricedAsRecorded(now: AgentDefinition, recorded: AgentDefinition | undefined): AgentDefinition {
  const { price, fallbacks = [], summarizer } = recorded ?? {}
  return {
    ...now,
    ...present({ price }),
    ...(now.fallbacks && {
      fallbacks: now.fallbacks.map((fallback, index) => ({
        ...fallback,
        ...present({ price: fallbacks[index]?.price }),
      })),
    }),
    ...(now.summarizer && { summarizer: { ...now.summarizer, ...present({ price: summarizer?.price }) } }),
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
      const { toolCallId, attempt, receipt, deadlineAt } = event
      const deadlineMs = deadlineAt === undefined ? {} : { deadlineMs: deadlineAt - event.at }
      return { type: 'tool_deferred', toolCallId, attempt, receipt, ...deadlineMs }
    }
    case 'tool_started':
    case 'tool_result':
      return toolCause(state, event)
    case 'approval_decided': {
      const { toolCallId, by, approved, input, reason = '' } = event
      if (!approved) return { type: 'deny', toolCallId, by, reason }
      return { type: 'approve', toolCallId, by, ...(input !== undefined && { input }) }
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
      return { type: 'cancel', ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) }
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

type ModelEvent = Extract<
  RuntimeEvent,
  {
    readonly type:
      | 'assistant_started'
      | 'assistant_text_delta'
      | 'assistant_reasoning_delta'
      | 'tool_input_delta'
      | 'tool_request_ready'
      | 'usage_updated'
      | 'assistant_message_finished'
      | 'model_stream_failed'
  }
>

function modelCause(event: ModelEvent, recorded: readonly RuntimeEvent[]): Signal | undefined {
  const { turn, attempt } = event
  const here = { turn, attempt }
  switch (event.type) {
    case 'assistant_started': {
      const { providerMessageId, servedModel } = event
      return {
        ...{ type: 'model_started', ...here },
        ...(providerMessageId !== undefined && { providerMessageId }),
        ...(servedModel !== undefined && { servedModel }),
      }
    }
    case 'assistant_text_delta':
      return { type: 'model_text', ...here, part: event.part, text: event.text }
    case 'assistant_reasoning_delta':
      return { type: 'model_reasoning', ...here, part: event.part, text: event.text }
    case 'tool_input_delta':
      return { type: 'model_tool_input', ...here, part: event.part, name: event.name, text: event.text }
    case 'tool_request_ready': {
      const { part, providerCallId, name, input, malformed, opaque } = event
      const call = {
        ...{ type: 'tool_call' as const, providerCallId, name, input },
        ...(malformed !== undefined && { malformed }),
        ...(opaque !== undefined && { opaque }),
      }
      return { type: 'model_tool_request', ...here, part, call }
    }
    case 'usage_updated':
      return {
        type: 'model_usage',
        ...here,
        usage: event.usage,
        ...(event.raw !== undefined && { raw: event.raw }),
      }
    case 'assistant_message_finished': {
      if (event.partial) return undefined
      const { stopReason, rawStopReason, providerMessageId } = event
      return {
        ...{ type: 'model_finished', ...here, stopReason, parts: replyParts(event, recorded) },
        ...(rawStopReason !== undefined && { rawStopReason }),
        ...(providerMessageId !== undefined && { providerMessageId }),
      }
    }
    case 'model_stream_failed': {
      if (event.failure.class === 'interrupted') return undefined
      return { type: 'model_failed', ...here, failure: event.failure }
    }
  }
}

/** The parts of a reply with the places that its deltas and requests name. */
function replyParts(
  message: EventOf<'assistant_message_finished'>,
  recorded: readonly RuntimeEvent[],
): ReplyPart[] {
  const mine = recorded.filter((event) => event.turn === message.turn && event.seq < message.seq)
  const places = (type: 'assistant_text_delta' | 'assistant_reasoning_delta'): number[] => {
    const parts = mine.flatMap((event) =>
      event.type === type && event.attempt === message.attempt ? [event.part] : [],
    )
    return [...new Set(parts)].sort((a, b) => a - b)
  }
  const free = { text: places('assistant_text_delta'), reasoning: places('assistant_reasoning_delta') }
  // Parts without any delta stand at places that nothing else names.
  let unnamed = 1 + Math.max(-1, ...mine.flatMap((event) => ('part' in event ? [event.part] : [])))
  return message.parts.map((part): ReplyPart => {
    switch (part.type) {
      case 'tool_call': {
        const { toolCallId, ...call } = part
        const request = mine.find(
          (event) => event.type === 'tool_request_ready' && event.toolCallId === toolCallId,
        )
        return { ...call, part: request?.type === 'tool_request_ready' ? request.part : unnamed++ }
      }
      case 'text':
      case 'reasoning':
        return { ...part, part: part.text === '' ? unnamed++ : (free[part.type].shift() ?? unnamed++) }
      case 'provider':
        return { ...part, part: unnamed++ }
    }
  })
}

/** What the outside world said about a call in doubt, or how a call ended: by its tool, or by whoever settled it. */
function toolCause(
  state: RunState,
  event: EventOf<'tool_started'> | EventOf<'tool_result'>,
): Message | undefined {
  const call = findCall(state, event.toolCallId)
  const asked = call?.status === 'in_doubt' && call.recovery === 'reconcile' && state.cancel === undefined
  if (asked) return { type: 'call_reconciled', toolCallId: event.toolCallId, finding: findingOf(event) }
  return event.type === 'tool_result' && call ? endingOf(call, event) : undefined
}

function findingOf(event: EventOf<'tool_started'> | EventOf<'tool_result'>): Reconciliation {
  if (event.type === 'tool_started') return { state: 'not_done' }
  const { outcome, content } = event
  return outcome === 'interrupted' ? { state: 'unknown' } : { state: 'done', outcome, content }
}

function endingOf(call: Call, event: EventOf<'tool_result'>): Message | undefined {
  const { toolCallId, outcome, content, durationMs, child } = event
  const own = present({ child })
  const settled = call.status === 'deferred' && durationMs === undefined
  if (settled && (outcome === 'success' || outcome === 'failed')) {
    return { type: 'settle', toolCallId, outcome, content, ...own }
  }
  // Only a tool's own ending says how long it took; what the machine settled took no time.
  if (durationMs === undefined || (call.status !== 'started' && call.child === undefined)) return undefined
  return { type: 'tool_ended', toolCallId, attempt: call.attempts, outcome, content, durationMs, ...own }
}
