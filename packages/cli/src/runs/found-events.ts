import { textOf, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  canonicalJson,
  type EventOf,
  type EventType,
  type JsonObject,
  type Outcome,
} from '@tallystick/core/vocabulary'
import { holds, type CallQuery } from './call-query.ts'
import { contentText } from '../view/text/content-text.ts'

/** What to find in a ledger. All filters must match. */
export interface EventFinder {
  readonly call: CallQuery
  /** Part of what was said, in letters of either case. */
  readonly text?: string
  readonly runId?: RunId
  readonly sessionId?: string
  /** Milliseconds since 1970 UTC, both ends included. */
  readonly fromAt?: number
  readonly toAt?: number
}

/** A call, or anything else that was said, with the event that it is found at. */
export interface Found {
  readonly runId: RunId
  readonly seq: number
  readonly turn: number
  readonly at: number
  readonly type: EventType
  /** What was said. */
  readonly text: string
  readonly toolCallId?: string
  readonly tool?: string
  /** As the model asked for it, or as it ran where that is another one. */
  readonly input?: JsonObject
  /** Absent of a call that has not ended. */
  readonly outcome?: Outcome
}

const callTypes = [
  'tool_request_ready',
  'tool_requests_collected',
  'approval_decided',
  'tool_result',
] as const
/**
 * Finds calls and what was said, in all runs, in the order in which it was recorded. A call is found at its result; those
 * that have not ended come last.
 */
export async function* foundEvents(ledger: Ledger, finder: EventFinder): AsyncGenerator<Found> {
  const { call, text, ...where } = finder
  const isOfCalls = call.tool !== undefined || call.outcome !== undefined || call.inputs.length > 0
  const types = [...callTypes, ...(isOfCalls ? [] : textTypes())]
  const calls = new OpenCalls(call)
  const matches = (part: string): boolean =>
    text === undefined || part.toLowerCase().includes(text.toLowerCase())
  for await (const event of ledger.find({ ...where, types })) {
    const result = calls.handle(event)
    const found = result ?? (isOfCalls ? undefined : foundText(event))
    if (found && matches(searchedText(found))) yield found
  }
  if (call.outcome !== undefined) return
  for (const found of calls.open()) if (matches(searchedText(found))) yield found
}

function textTypes(): readonly EventType[] {
  return Object.keys(texts) as EventType[]
}

function searchedText({ text, input, tool = '' }: Found): string {
  return `${tool} ${input === undefined ? '' : canonicalJson(input)} ${text}`
}

/** The calls that were asked for and have no result yet. */
class OpenCalls {
  readonly #query: CallQuery
  readonly #calls = new Map<string, { readonly request: EventOf<'tool_request_ready'>; input: JsonObject }>()

  constructor(query: CallQuery) {
    this.#query = query
  }

  /** The call that ends with an event, where it is one that is looked for. */
  handle(event: RuntimeEvent): Found | undefined {
    if (event.type === 'tool_request_ready' && event.removed === undefined) {
      this.#calls.set(event.toolCallId, { request: event, input: event.input })
    }
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, input } of event.calls ?? []) this.#change(toolCallId, input)
    }
    if (event.type === 'approval_decided') this.#change(event.toolCallId, event.input)
    return event.type === 'tool_result' ? this.#result(event) : undefined
  }

  #result(event: EventOf<'tool_result'>): Found | undefined {
    const call = this.#calls.get(event.toolCallId)
    this.#calls.delete(event.toolCallId)
    const { input = {}, request } = call ?? {}
    if (!this.#isAsked(event.name, [input, request?.input ?? input], event.outcome)) return undefined
    const { runId, seq, turn, at, type, toolCallId, name: tool, outcome, content } = event
    return { runId, seq, turn, at, type, toolCallId, tool, input, outcome, text: contentText(content ?? []) }
  }

  *open(): Generator<Found> {
    for (const { request, input } of this.#calls.values()) {
      if (!this.#isAsked(request.name, [input, request.input], undefined)) continue
      const { runId, seq, turn, at, type, toolCallId, name: tool } = request
      yield { runId, seq, turn, at, type, toolCallId, tool, input, text: '' }
    }
  }

  #change(toolCallId: string, input: JsonObject | undefined): void {
    const call = this.#calls.get(toolCallId)
    if (call && input !== undefined) call.input = input
  }

  #isAsked(name: string, inputs: readonly JsonObject[], result: Outcome | undefined): boolean {
    const { tool, outcome, inputs: asked } = this.#query
    if (tool !== undefined && name !== tool) return false
    if (outcome !== undefined && result !== outcome) return false
    return asked.every((query) => inputs.some((input) => holds(input, query)))
  }
}

/** What an event says in words; `undefined` where it says nothing. */
function foundText(event: RuntimeEvent): Found | undefined {
  const text = eventText(event)
  if (text === undefined || text === '') return undefined
  const { runId, seq, turn, at, type } = event
  return { runId, seq, turn, at, type, text }
}

function eventText(event: RuntimeEvent): string | undefined {
  if (event.removed !== undefined) return undefined
  const text = texts[event.type] as ((event: RuntimeEvent) => string | undefined) | undefined
  return text?.(event)
}

/** What is said in events of some types. */
const texts: { readonly [T in EventType]?: (event: EventOf<T>) => string | undefined } = {
  input_received: ({ message }) => contentText(message.parts),
  assistant_message_finished: ({ parts }) => textOf(parts),
  model_stream_failed: ({ failure }) => failure.message,
  guardrail_tripped: ({ guardrail, detail = '' }) => `${guardrail} ${detail}`.trim(),
  context_compacted: ({ summary }) => contentText(summary.parts),
  cancel_requested: ({ reason }) => reason,
  run_finished: ({ reason, detail = '' }) => `${reason} ${detail}`.trim(),
}
