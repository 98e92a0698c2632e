import type { PendingApproval, RunId, RunState, RuntimeEvent, Usage } from '@tallystick/core'
import { type DeferredCall, option, requireOptions } from '@tallystick/core/internal'
import { type JsonObject, parseRunId } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import { toApprovalId, mapEvents, type MoveOf, type MoveTable, requireEvents } from '../stream/run-moves.ts'
import { openAiEndings, formatFailure, subtractUsage } from './answer.ts'
import { type ChatChunk, createChunkTable, type ChatNames } from './chat.ts'

/** A response is a run from an event on, until it ends or waits. */
function toResponseId(runId: string, after: number): string {
  return after === 0 ? `resp_${runId}` : `resp_${runId}_${after}`
}

/** Returns the run of a response; `undefined` if this server gave no such id. */
export function parseResponseId(responseId: string): RunId | undefined {
  const [, run = ''] = /^resp_([0-9a-f-]{36})(?:_\d{1,15})?$/.exec(responseId) ?? []
  return parseRunId(run)
}

/** An event of OpenAI's Responses API. */
export type ResponseEvent = {
  readonly type: string
  readonly sequence_number: number
  readonly [field: string]: unknown
}

/** Names for a client of the Responses API. */
export interface ResponseNames {
  /** Default: the agent that the run began with. */
  readonly model?: string | undefined
  readonly previousResponseId?: string | undefined
  readonly metadata?: JsonObject | undefined
}

interface Item {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

/**
 * Maps each move of a run to the Responses API. The response at the end holds what is on record, without text that was
 * taken back. Calls that the agent runs itself are not shown; calls that wait for a person or the client come last.
 */
export function createResponseTable(names: ResponseNames = {}): MoveTable<ResponseEvent> {
  const table = new ResponseTable(names)
  return {
    run_started: (move) => table.start(move),
    input_taken: null,
    input_dropped: null,
    step_started: () => table.beginStep(),
    part_started: (move) => table.startPart(move),
    part_added: (move) => table.addToPart(move),
    part_ended: () => table.endPart(),
    step_withdrawn: () => table.withdraw(),
    call_started: null,
    call_input_added: null,
    call_requested: null,
    approval_requested: null,
    approval_decided: null,
    call_progressed: null,
    call_ended: null,
    step_ended: null,
    run_reopened: ({ state }) => table.reopen(state),
    answer_ended: null,
    message_waits: null,
    run_waits: (move) => table.wait(move),
    run_finished: (move) => table.finish(move),
  }
}

/** A part of the reply that is under way. */
interface OpenPart {
  readonly kind: 'text' | 'reasoning'
  readonly id: string
  readonly index: number
  text: string
}

class ResponseTable {
  readonly #names: ResponseNames
  #fields: { readonly id: string; readonly created_at: number; readonly model: string } | undefined
  #usedBefore: Usage = {}
  #sequence = 0
  #items = 0
  #output: Item[] = []
  /** How many items there were when the step began. */
  #before = 0
  #open: OpenPart | undefined

  constructor(names: ResponseNames) {
    this.#names = names
  }

  start({ runId, agent, at }: MoveOf<'run_started'>): readonly ResponseEvent[] {
    return this.#begin(toResponseId(runId, 0), agent, at)
  }

  /** A request that answers what a run waits for gets a response of its own. */
  reopen({ runId, seq, agent, at, totals }: RunState): readonly ResponseEvent[] {
    this.#usedBefore = totals.usage
    this.#sequence = 0
    this.#items = 0
    this.#output = []
    this.#before = 0
    this.#open = undefined
    return this.#begin(toResponseId(runId, seq), agent, at)
  }

  #begin(id: string, agent: string, at: number): readonly ResponseEvent[] {
    this.#fields = { id, created_at: Math.floor(at / 1_000), model: this.#names.model ?? agent }
    const response = this.#response('in_progress')
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })]
  }

  beginStep(): readonly ResponseEvent[] {
    this.#before = this.#output.length
    return []
  }

  startPart({ kind, partId }: MoveOf<'part_started'>): readonly ResponseEvent[] {
    const open: OpenPart = {
      kind,
      id: `${kind === 'text' ? 'msg' : 'rs'}_${partId}`,
      index: this.#items++,
      text: '',
    }
    this.#open = open
    const item = kind === 'text' ? toMessageItem(open.id, 'in_progress') : toReasoningItem(open.id)
    return [
      this.#event('response.output_item.added', { output_index: open.index, item }),
      this.#partEvent(open, kind === 'text' ? 'content_part.added' : 'reasoning_summary_part.added', {
        part: toPart(kind, ''),
      }),
    ]
  }

  addToPart({ text: delta }: MoveOf<'part_added'>): readonly ResponseEvent[] {
    const open = this.#open
    if (open === undefined || delta === '') return []
    open.text += delta
    if (open.kind === 'reasoning') return [this.#partEvent(open, 'reasoning_summary_text.delta', { delta })]
    return [this.#partEvent(open, 'output_text.delta', { delta, logprobs: [] })]
  }

  endPart(): readonly ResponseEvent[] {
    const open = this.#open
    if (open === undefined) return []
    this.#open = undefined
    const { kind, text, id, index } = open
    const part = toPart(kind, text)
    const item = kind === 'text' ? toMessageItem(id, 'completed', [part]) : toReasoningItem(id, [part])
    this.#output.push(item)
    const isText = kind === 'text'
    return [
      this.#partEvent(open, isText ? 'output_text.done' : 'reasoning_summary_text.done', {
        text,
        ...(isText && { logprobs: [] }),
      }),
      this.#partEvent(open, isText ? 'content_part.done' : 'reasoning_summary_part.done', { part }),
      this.#event('response.output_item.done', { output_index: index, item }),
    ]
  }

  withdraw(): readonly ResponseEvent[] {
    this.#output.length = this.#before
    return []
  }

  wait({ state, waits }: MoveOf<'run_waits'>): readonly ResponseEvent[] {
    const asked = [
      ...waits.deferred.flatMap((call) => this.#functionCall(call)),
      ...waits.approvals.flatMap((approval) => this.#question(approval, state.agent)),
    ]
    const isCut = asked.length === 0
    const response = this.#response(isCut ? 'incomplete' : 'completed', {
      usage: this.#usage(state.totals.usage),
      ...(isCut && { incomplete_details: { reason: 'max_output_tokens' } }),
    })
    return [...asked, this.#event(isCut ? 'response.incomplete' : 'response.completed', { response })]
  }

  finish({ runId, reason, usage }: MoveOf<'run_finished'>): readonly ResponseEvent[] {
    const used = { usage: this.#usage(usage) }
    const ending = openAiEndings[reason]
    if (ending === 'completed') {
      return [this.#event('response.completed', { response: this.#response('completed', used) })]
    }
    if (ending === 'cut' || ending === 'withheld') {
      const why = ending === 'cut' ? 'max_output_tokens' : 'content_filter'
      const response = this.#response('incomplete', { ...used, incomplete_details: { reason: why } })
      return [this.#event('response.incomplete', { response })]
    }
    const error = ending === 'failed' ? { code: 'server_error', message: formatFailure(runId, reason) } : null
    return [this.#event('response.failed', { response: this.#response(ending, { ...used, error }) })]
  }

  /** A call that the client runs: it sends the result as `function_call_output`. */
  #functionCall({ toolCallId, name, input }: DeferredCall): readonly ResponseEvent[] {
    const [id, output_index, text] = [`fc_${toolCallId}`, this.#items++, JSON.stringify(input)]
    const item = {
      id,
      type: 'function_call',
      call_id: toolCallId,
      name,
      arguments: text,
      status: 'completed',
    }
    const begun = { ...item, arguments: '', status: 'in_progress' }
    this.#output.push(item)
    return [
      this.#event('response.output_item.added', { output_index, item: begun }),
      this.#event('response.function_call_arguments.delta', { item_id: id, output_index, delta: text }),
      this.#event('response.function_call_arguments.done', {
        item_id: id,
        output_index,
        name,
        arguments: text,
      }),
      this.#event('response.output_item.done', { output_index, item }),
    ]
  }

  /** A call that waits for a person, who answers with `mcp_approval_response`. */
  #question(approval: PendingApproval, agent: string): readonly ResponseEvent[] {
    const output_index = this.#items++
    const item = {
      id: toApprovalId(approval),
      type: 'mcp_approval_request',
      server_label: agent,
      name: approval.name,
      arguments: JSON.stringify(approval.input),
    }
    this.#output.push(item)
    return [
      this.#event('response.output_item.added', { output_index, item }),
      this.#event('response.output_item.done', { output_index, item }),
    ]
  }

  #event(type: string, fields: object): ResponseEvent {
    return { type, sequence_number: this.#sequence++, ...fields }
  }

  #partEvent({ kind, id, index }: OpenPart, name: string, fields: object): ResponseEvent {
    const place = kind === 'text' ? { content_index: 0 } : { summary_index: 0 }
    return this.#event(`response.${name}`, { item_id: id, output_index: index, ...place, ...fields })
  }

  #usage(now: Usage): object {
    const { input, cached, output, reasoning: reasoned } = subtractUsage(now, this.#usedBefore)
    return {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoned },
      total_tokens: input + output,
    }
  }

  #response(status: string, fields: object = {}): object {
    return {
      ...this.#fields,
      object: 'response',
      status,
      error: null,
      incomplete_details: null,
      instructions: null,
      max_output_tokens: null,
      metadata: this.#names.metadata ?? {},
      output: [...this.#output],
      parallel_tool_calls: true,
      previous_response_id: this.#names.previousResponseId ?? null,
      store: true,
      temperature: null,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      truncation: 'disabled',
      usage: null,
      ...fields,
    }
  }
}

function toPart(kind: OpenPart['kind'], text: string): object {
  return kind === 'text'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type: 'summary_text', text }
}

function toMessageItem(id: string, status: string, content: readonly object[] = []): Item {
  return { id, type: 'message', status, role: 'assistant', content }
}

function toReasoningItem(id: string, summary: readonly object[] = []): Item {
  return { id, type: 'reasoning', summary }
}

const { anyObject, anyText, fields, maybe, trueOrFalse } = option

const responseNames = fields<ResponseNames>({
  model: maybe(anyText),
  previousResponseId: maybe(anyText),
  metadata: maybe(anyObject),
})

const chatNames = fields<ChatNames>({ model: maybe(anyText), includesUsage: maybe(trueOrFalse) })

/** Maps the events of a run, from its first, to events of OpenAI's Responses API. */
export function toOpenAiResponse(
  events$: Observable<RuntimeEvent>,
  names: ResponseNames = {},
): Observable<ResponseEvent> {
  requireEvents('toOpenAiResponse', events$)
  requireOptions('toOpenAiResponse', responseNames, names)
  return mapEvents(events$, () => createResponseTable(names))
}

/** Maps the events of a run, from its first, to chunks of OpenAI's Chat Completions. */
export function toOpenAiChat(
  events$: Observable<RuntimeEvent>,
  names: ChatNames = {},
): Observable<ChatChunk> {
  requireEvents('toOpenAiChat', events$)
  requireOptions('toOpenAiChat', chatNames, names)
  return mapEvents(events$, () => createChunkTable(names))
}
