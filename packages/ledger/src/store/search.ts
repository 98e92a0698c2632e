import { joinText, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import {
  type EventOf,
  type EventType,
  eventTypes,
  type Json,
  type JsonObject,
  type Outcome,
  outcomes,
  type ResultPart,
  toCanonicalJson,
  type UserPart,
} from '@tallystick/core/vocabulary'

/** Joins parts to one text; images and files are named by their media type. */
export function formatContent(parts: readonly (UserPart | ResultPart)[]): string {
  requireOptions('formatContent', listOf(anyObject), parts, 'the parts')
  const texts = parts.map((part) => {
    if (part.type === 'text') return part.text
    const { mediaType, url, providerFile } = part
    const name = part.type === 'file' ? part.name : undefined
    const place = providerFile && `kept by ${providerFile.provider} as ${providerFile.id}`
    return `[${[mediaType, name, url, place].filter((each) => each !== undefined).join(', ')}]`
  })
  return texts.join('\n')
}

export interface InputQuery {
  /** Names of fields and numbers of items, from the outside in. */
  readonly path: readonly string[]
  readonly value: string
}

/** Conditions on a call. All must hold. */
export interface CallQuery {
  readonly tool?: string | undefined
  readonly outcome?: Outcome | undefined
  readonly inputs: readonly InputQuery[]
}

/** Compares texts as they are, and other values as JSON. */
function holds(input: JsonObject, { path, value }: InputQuery): boolean {
  let at: Json | undefined = input
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
    at = (at as { readonly [field: string]: Json })[name]
  }
  return at === value || (at !== undefined && typeof at !== 'string' && JSON.stringify(at) === value)
}

/** Conditions on what is found. All must hold. */
export interface EventSearch {
  readonly call: CallQuery
  /** Part of the text, in either case. */
  readonly text?: string | undefined
  readonly runId?: RunId | undefined
  readonly sessionId?: string | undefined
  /** Milliseconds since 1970 UTC, both ends included. */
  readonly fromAt?: number | undefined
  readonly toAt?: number | undefined
}

/** A call, or another event with text. A call is found at its result. */
export interface FoundEvent {
  readonly runId: RunId
  readonly seq: number
  readonly turn: number
  readonly at: number
  readonly type: EventType
  readonly text: string
  readonly toolCallId?: string
  readonly tool?: string
  /** As it ran, or as the model asked for it if it did not run. */
  readonly input?: JsonObject
  /** Absent if the call has not ended. */
  readonly outcome?: Outcome
}

const callTypes = [
  'tool_request_ready',
  'tool_requests_collected',
  'approval_decided',
  'tool_result',
] as const

const { anyObject, anyText, fields, listOf, maybe, numberFrom, oneOf } = option
const eventSearch = fields<EventSearch>({
  call: fields<CallQuery>({
    tool: maybe(anyText),
    outcome: maybe(oneOf(outcomes)),
    inputs: listOf(fields<InputQuery>({ path: listOf(anyText), value: anyText })),
  }),
  text: maybe(anyText),
  runId: maybe(anyText),
  sessionId: maybe(anyText),
  fromAt: maybe(numberFrom(-Infinity)),
  toAt: maybe(numberFrom(-Infinity)),
})

/** Finds calls and messages in the order in which they were recorded; calls that have not ended come last. */
export async function* searchEvents(ledger: Ledger, search: EventSearch): AsyncGenerator<FoundEvent> {
  requireLedger('searchEvents', ledger)
  requireOptions('searchEvents', eventSearch, search, 'what is searched for')
  const { call, text, ...where } = search
  const { tool, outcome, inputs: queries } = call
  const isOfCalls = tool !== undefined || outcome !== undefined || queries.length > 0
  const types = [...callTypes, ...(isOfCalls ? [] : textTypes)]
  /** The calls that were asked for and have no result yet. */
  const open = new Map<string, { readonly request: EventOf<'tool_request_ready'>; input: JsonObject }>()
  const change = (toolCallId: string, input: JsonObject | undefined): void => {
    const call = open.get(toolCallId)
    if (call && input !== undefined) call.input = input
  }
  const fits = (found: FoundEvent, inputs: readonly JsonObject[] = []): boolean => {
    if (tool !== undefined && found.tool !== tool) return false
    if (outcome !== undefined && found.outcome !== outcome) return false
    if (!queries.every((query) => inputs.some((input) => holds(input, query)))) return false
    const input = found.input === undefined ? '' : toCanonicalJson(found.input)
    const searched = `${found.tool ?? ''} ${input} ${found.text}`
    return text === undefined || searched.toLowerCase().includes(text.toLowerCase())
  }
  for await (const event of ledger.find({ ...where, types })) {
    const { runId, seq, turn, at, type } = event
    if (event.type === 'tool_request_ready' && event.removed === undefined) {
      open.set(event.toolCallId, { request: event, input: event.input })
    }
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, input } of event.calls ?? []) change(toolCallId, input)
    }
    if (event.type === 'approval_decided') change(event.toolCallId, event.input)
    if (event.type === 'tool_result') {
      const { toolCallId, name, content } = event
      const { input = {}, request } = open.get(toolCallId) ?? {}
      open.delete(toolCallId)
      const ended = {
        toolCallId,
        tool: name,
        input,
        outcome: event.outcome,
        text: formatContent(content ?? []),
      }
      const found: FoundEvent = { runId, seq, turn, at, type, ...ended }
      if (fits(found, [input, request?.input ?? input])) yield found
    } else if (!isOfCalls) {
      const found: FoundEvent = { runId, seq, turn, at, type, text: readText(event) }
      if (found.text !== '' && fits(found)) yield found
    }
  }
  for (const { request, input } of open.values()) {
    const { runId, seq, turn, at, type, toolCallId, name } = request
    const found: FoundEvent = { runId, seq, turn, at, type, toolCallId, tool: name, input, text: '' }
    if (fits(found, [input, request.input])) yield found
  }
}

/** Reads the text of an event; empty if it has none. */
function readText(event: RuntimeEvent): string {
  const read = texts[event.type] as ((event: RuntimeEvent) => string | undefined) | null
  return (event.removed === undefined ? read?.(event) : undefined) ?? ''
}

/** The text of each type of event that a search looks into; the text of calls is found at their results. */
const texts: { readonly [T in EventType]: ((event: EventOf<T>) => string | undefined) | null } = {
  run_started: null,
  run_resumed: null,
  schedule_set: ({ name }) => name,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
  history_edited: null,
  input_received: ({ message }) => formatContent(message.parts),
  input_settled: null,
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: ({ parts }) => joinText(parts),
  model_stream_failed: ({ failure }) => failure.message,
  tool_requests_collected: null,
  approval_requested: null,
  approval_decided: null,
  approval_added: null,
  approval_applied: null,
  approval_withdrawn: null,
  tool_started: null,
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: null,
  background_ended: ({ content }) => formatContent(content),
  tool_results_injected: null,
  compaction_started: null,
  context_compacted: ({ summary }) => formatContent(summary.parts),
  agent_handed_off: null,
  guardrail_tripped: ({ guardrail, detail = '' }) => `${guardrail} ${detail}`.trim(),
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: ({ reason }) => reason,
  feedback_given: ({ by, score, note = '' }) => `${by} ${score ?? ''} ${note}`.trim(),
  run_finished: ({ reason, detail = '' }) => `${reason} ${detail}`.trim(),
}
const textTypes = eventTypes.filter((type) => texts[type] !== null)
