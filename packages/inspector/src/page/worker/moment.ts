import type { Message, RunState, RuntimeEvent } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { type Call, listLegalEvents, nextAction, requiredEffects } from '@tallystick/core/machine'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'
import type { RunModel } from './run-model.ts'
import { type Change, type CutText, cutText, listChanges } from './values.ts'

/** A run right after one of its events. */
export interface Moment {
  readonly seq: number
  readonly type: string
  readonly turn: number
  readonly at: number
  readonly toolCallId?: string
  readonly phase: RunState['phase']
  readonly legal: readonly string[]
  readonly next: NextStep
  readonly conversation: readonly ConversationItem[]
  /** Items before the first of `conversation`, which holds the last 200 or a few more. */
  readonly earlier: number
  readonly changes: readonly Change[]
}

/** What the loop controller does next, and what must be in flight. */
export interface NextStep {
  readonly kind: string
  readonly inFlight: readonly { readonly kind: string; readonly key: string }[]
  readonly isSuspended: boolean
  readonly wakeAt?: number
  /** The types of the events that it records first. */
  readonly facts: readonly string[]
}

/** Something of the conversation as people see it. */
export interface ConversationItem {
  readonly key: string
  readonly kind: 'user' | 'assistant' | 'reasoning' | 'call' | 'result' | 'other' | 'feedback'
  readonly text: CutText
  /** The event by which it came. */
  readonly seq?: number
  /** Of calls and results. */
  readonly toolCallId?: string
  readonly name?: string
  readonly outcome?: string
  readonly status?: string
  /** It is still coming. */
  readonly isDraft?: true
}

const maxItems = 200

export function describeMoment(model: RunModel, seq: number): Moment | undefined {
  const state = model.stateAt(seq)
  const event = model.events[seq - 1]
  if (state === undefined || event === undefined) return undefined
  const before = model.stateAt(seq - 1)
  // Folded from the state before, so that what both share is the same object.
  const after = model.stateAt(seq) ?? state
  const { items, earlier } = listConversation(model, after)
  return {
    seq,
    type: event.type,
    turn: event.turn,
    at: event.at,
    ...(event.toolCallId !== undefined && { toolCallId: event.toolCallId }),
    phase: after.phase,
    legal: listLegalEvents(after.phase),
    next: describeNext(after),
    conversation: items,
    earlier,
    changes: listChanges(before && showState(before), showState(after)),
  }
}

/** The state as people read it: the history as its messages. */
export function showState(state: RunState): object {
  const { history, callLog: _, ...rest } = state
  return { ...rest, history: readMessages(history) }
}

function describeNext(state: RunState): NextStep {
  const inFlight = requiredEffects(state).map(({ kind, key }) => ({ kind, key }))
  // Who takes over after a handoff, only the code of the agents knows.
  if (state.phase === 'injecting' && state.handoff)
    return { kind: 'hand_off', inFlight, isSuspended: false, facts: [] }
  const action = nextAction(state, state.at)
  return {
    kind: action.kind,
    inFlight,
    isSuspended: action.kind === 'suspend',
    facts: 'facts' in action ? action.facts.map(({ type }) => type) : [],
    ...(action.kind === 'wait' && action.wakeAt !== undefined && { wakeAt: action.wakeAt }),
  }
}

/** The end of the conversation, and how many items come before it. What is left out is only counted. */
function listConversation(
  model: RunModel,
  state: RunState,
): { readonly items: readonly ConversationItem[]; readonly earlier: number } {
  const messages = readMessages(state.history)
  const said: ConversationItem[][] = []
  let count = 0
  let index = messages.length
  while (index > 0 && count < maxItems) {
    const message = messages[--index]!
    const items = describeMessage(message, String(index), model.findSeq(message))
    count += items.length
    said.unshift(items)
  }
  const earlier = messages.slice(0, index).reduce((sum, message) => sum + countItems(message), 0)
  return { items: [...withOpen(said.flat(), state), ...listFeedback(model, state)], earlier }
}

/** What people have said of the run since its end. */
function listFeedback(model: RunModel, { phase, seq }: RunState): readonly ConversationItem[] {
  if (phase !== 'done') return []
  const items: ConversationItem[] = []
  for (let last = seq; items.length < maxItems; last--) {
    const event = model.events[last - 1]
    if (event?.type !== 'feedback_given') break
    items.unshift({
      key: `feedback.${last}`,
      kind: 'feedback',
      text: cutText(event.note ?? ''),
      name: event.by,
      seq: last,
      ...(event.score !== undefined && { outcome: `score ${event.score}` }),
    })
  }
  return items
}

function countItems(message: Message): number {
  return message.role === 'tool' ? message.results.length : message.parts.length
}

/** What was said, with what of it is still coming or under way. */
function withOpen(said: readonly ConversationItem[], state: RunState): readonly ConversationItem[] {
  if (state.phase === 'streaming') return [...said, ...listDrafts(state.attempt)]
  if (state.phase !== 'collecting' && state.phase !== 'executing') return said
  // The reply is said; its calls are under way.
  const open = new Map<string | undefined, Call>(state.calls.map((call) => [call.toolCallId, call]))
  return said.map((item) => {
    const call = item.kind === 'call' ? open.get(item.toolCallId) : undefined
    return call ? { ...item, ...describeStatus(call) } : item
  })
}

function describeMessage(message: Message, key: string, seq: number | undefined): ConversationItem[] {
  const at = seq === undefined ? {} : { seq }
  if (message.role === 'tool') {
    return message.results.map((result, index) => ({
      key: `${key}.${index}`,
      kind: 'result' as const,
      text: cutText(joinParts(result.content)),
      toolCallId: result.toolCallId,
      outcome: result.outcome,
      ...at,
    }))
  }
  return message.parts.map((part, index): ConversationItem => {
    const base = { key: `${key}.${index}`, ...at }
    if (part.type === 'tool_call') {
      const { name, toolCallId, input } = part
      return { ...base, kind: 'call', text: cutText(JSON.stringify(input, undefined, 2)), name, toolCallId }
    }
    if (part.type === 'reasoning') return { ...base, kind: 'reasoning', text: cutText(part.text) }
    if (part.type === 'text') {
      return { ...base, kind: message.role === 'user' ? 'user' : 'assistant', text: cutText(part.text) }
    }
    return { ...base, kind: 'other', text: cutText(describePart(part)) }
  })
}

/** The parts of the reply that streams. */
function listDrafts({
  drafts,
  calls,
}: Extract<RunState, { phase: 'streaming' }>['attempt']): readonly ConversationItem[] {
  return [
    ...drafts.map((draft): ConversationItem => ({
      key: `draft.${draft.part}`,
      kind: draft.kind === 'text' ? 'assistant' : 'reasoning',
      text: cutText(draft.text),
      isDraft: true,
    })),
    ...calls.map((call): ConversationItem => ({
      key: `call.${call.toolCallId}`,
      kind: 'call',
      text: cutText(JSON.stringify(call.input, undefined, 2)),
      name: call.name,
      toolCallId: call.toolCallId,
      ...describeStatus(call),
    })),
  ]
}

function describeStatus({ status, result }: Call): Pick<ConversationItem, 'status' | 'outcome'> {
  return { status, ...(result && { outcome: result.outcome }) }
}

type Part = {
  readonly type: string
  readonly text?: string
  readonly mediaType?: string
  readonly kind?: string
}

function joinParts(parts: readonly Part[]): string {
  return parts.map((part) => part.text ?? describePart(part)).join('\n')
}

function describePart({ type, mediaType, kind }: Part): string {
  return `(${[type, mediaType ?? kind].filter(Boolean).join(' ')})`
}

/** An event as a line of a list. */
export interface EventLine {
  readonly seq: number
  readonly type: string
  readonly turn: number
  readonly at: number
  readonly toolCallId?: string
  readonly label: string
  /** Its content was removed. */
  readonly isRemoved?: true
}

export function describeEvent(event: RuntimeEvent): EventLine {
  const { seq, type, turn, at, toolCallId } = event
  return {
    seq,
    type,
    turn,
    at,
    label: labelEvent(event).slice(0, 160),
    ...(toolCallId !== undefined && { toolCallId }),
    ...('removed' in event && event.removed !== undefined && { isRemoved: true as const }),
  }
}

/** A few words on what an event says. */
function labelEvent(event: RuntimeEvent): string {
  const label = labels[event.type] as ((event: RuntimeEvent) => string) | undefined
  return label?.(event) ?? ''
}

const labels: { readonly [Type in EventType]?: (event: EventOf<Type>) => string } = {
  run_started: ({ agent, definition }) => `${agent}, ${definition.model.modelId}`,
  input_received: ({ message }) => joinParts(message.parts),
  model_call_started: ({ model, attempt }) => `${model.modelId}${labelAttempt(attempt)}`,
  assistant_text_delta: ({ text }) => text,
  assistant_reasoning_delta: ({ text }) => text,
  tool_input_delta: ({ text }) => text,
  assistant_message_finished: ({ stopReason, partial }) => `${stopReason}${partial ? ', cut off' : ''}`,
  model_stream_failed: ({ failure }) => `${failure.class}: ${failure.message}`,
  tool_request_ready: ({ name, input }) => `${name} ${JSON.stringify(input)}`,
  approval_requested: ({ name }) => name,
  approval_added: ({ by }) => `approved by ${by}, waits for more`,
  approval_applied: ({ by }) => `by the standing approval of ${by}`,
  approval_withdrawn: ({ by }) => `a standing approval, by ${by}`,
  approval_decided: ({ approved, by }) => `${approved ? 'approved' : 'denied'} by ${by}`,
  tool_started: ({ name, attempt }) => `${name}${labelAttempt(attempt)}`,
  tool_attempt_failed: ({ name, outcome }) => `${name}: ${outcome}`,
  tool_result: ({ name, outcome }) => `${name}: ${outcome}`,
  agent_handed_off: ({ from, to }) => `${from} to ${to}`,
  guardrail_tripped: ({ guardrail, on }) => `${guardrail} on ${on}`,
  limit_reached: ({ limit }) => limit,
  limit_raised: ({ limit }) => limit,
  run_resumed: ({ why }) => why,
  run_finished: ({ reason }) => reason,
  feedback_given: ({ by, score, note = '' }) => `${by} ${score ?? ''} ${note}`,
}

function labelAttempt(attempt: number): string {
  return attempt > 1 ? `, attempt ${attempt}` : ''
}
