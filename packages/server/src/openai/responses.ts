import type { PendingApproval, RunId, RuntimeEvent, Usage } from '@tallystick/core'
import { type DeferredCall, option, requireOptions } from '@tallystick/core/internal'
import { type JsonObject, parseRunId } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import { mapEvents, type MoveTable, runEndings, toApprovalId } from '../stream/run-moves.ts'
import { formatFailure, subtractUsage } from './answer.ts'
import { type ChatChunk, type ChatNames, createChunkTable } from './chat.ts'

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

/** The part of the reply that is under way. */
interface OpenPart {
  readonly kind: 'text' | 'reasoning'
  readonly id: string
  readonly index: number
  text: string
}

/**
 * Maps each move of a run to the Responses API. The response at the end holds what is on record, without withdrawn text.
 * Calls that the agent runs itself are not shown; calls that wait for a person or the client come last.
 */
export function createResponseTable(names: ResponseNames = {}): MoveTable<ResponseEvent> {
  let fields: { readonly id: string; readonly created_at: number; readonly model: string } | undefined
  let usedBefore: Usage = {}
  let sequence = 0
  let items = 0
  let output: object[] = []
  /** How many items there were when the step began. */
  let before = 0
  let open: OpenPart | undefined

  const event = (type: string, more: object): ResponseEvent => ({
    type: `response.${type}`,
    sequence_number: sequence++,
    ...more,
  })
  const partEvent = ({ kind, id, index }: OpenPart, name: string, more: object): ResponseEvent =>
    event(name, {
      item_id: id,
      output_index: index,
      ...(kind === 'text' ? { content_index: 0 } : { summary_index: 0 }),
      ...more,
    })
  const response = (status: string, more: object = {}): object => ({
    ...fields,
    object: 'response',
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    metadata: names.metadata ?? {},
    output: [...output],
    parallel_tool_calls: true,
    previous_response_id: names.previousResponseId ?? null,
    store: true,
    temperature: null,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: null,
    ...more,
  })
  const begin = (id: string, agent: string, at: number): readonly ResponseEvent[] => {
    fields = { id, created_at: Math.floor(at / 1_000), model: names.model ?? agent }
    const begun = { response: response('in_progress') }
    return [event('created', begun), event('in_progress', begun)]
  }
  const usage = (now: Usage): object => {
    const { input, cached, output: written, reasoning } = subtractUsage(now, usedBefore)
    return {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: written,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + written,
    }
  }
  /** A call that the client runs: it sends the result as `function_call_output`. */
  const functionCall = ({ toolCallId, name, input }: DeferredCall): readonly ResponseEvent[] => {
    const [id, output_index, text] = [`fc_${toolCallId}`, items++, JSON.stringify(input)]
    const call = { id, type: 'function_call', call_id: toolCallId, name }
    const item = { ...call, arguments: text, status: 'completed' }
    output.push(item)
    const place = { item_id: id, output_index }
    return [
      event('output_item.added', { output_index, item: { ...call, arguments: '', status: 'in_progress' } }),
      event('function_call_arguments.delta', { ...place, delta: text }),
      event('function_call_arguments.done', { ...place, name, arguments: text }),
      event('output_item.done', { output_index, item }),
    ]
  }
  /** A call that waits for a person, who answers with `mcp_approval_response`. */
  const question = (approval: PendingApproval, agent: string): readonly ResponseEvent[] => {
    const output_index = items++
    const { name, input } = approval
    const call = { server_label: agent, name, arguments: JSON.stringify(input) }
    const item = { id: toApprovalId(approval), type: 'mcp_approval_request', ...call }
    output.push(item)
    return [
      event('output_item.added', { output_index, item }),
      event('output_item.done', { output_index, item }),
    ]
  }

  return {
    run_started: ({ runId, agent, at }) => begin(toResponseId(runId, 0), agent, at),
    input_taken: null,
    input_dropped: null,
    step_started: () => {
      before = output.length
      return []
    },
    part_started: ({ kind, partId }) => {
      const isText = kind === 'text'
      open = { kind, id: `${isText ? 'msg' : 'rs'}_${partId}`, index: items++, text: '' }
      const item = isText ? toMessageItem(open.id, 'in_progress') : toReasoningItem(open.id)
      return [
        event('output_item.added', { output_index: open.index, item }),
        partEvent(open, isText ? 'content_part.added' : 'reasoning_summary_part.added', {
          part: toPart(kind, ''),
        }),
      ]
    },
    part_added: ({ text: delta }) => {
      if (open === undefined || delta === '') return []
      open.text += delta
      return open.kind === 'reasoning'
        ? [partEvent(open, 'reasoning_summary_text.delta', { delta })]
        : [partEvent(open, 'output_text.delta', { delta, logprobs: [] })]
    },
    part_ended: () => {
      if (open === undefined) return []
      const ended = open
      open = undefined
      const { kind, text, id, index } = ended
      const isText = kind === 'text'
      const part = toPart(kind, text)
      const item = isText ? toMessageItem(id, 'completed', [part]) : toReasoningItem(id, [part])
      output.push(item)
      return [
        isText
          ? partEvent(ended, 'output_text.done', { text, logprobs: [] })
          : partEvent(ended, 'reasoning_summary_text.done', { text }),
        partEvent(ended, isText ? 'content_part.done' : 'reasoning_summary_part.done', { part }),
        event('output_item.done', { output_index: index, item }),
      ]
    },
    call_started: null,
    call_input_added: null,
    call_requested: null,
    step_withdrawn: () => {
      output.length = before
      return []
    },
    approval_requested: null,
    approval_decided: null,
    call_progressed: null,
    output_written: null,
    call_ended: null,
    step_ended: null,
    // A request that supplies what a run waits for gets a new response.
    run_reopened: ({ state: { runId, seq, agent, at, totals } }) => {
      usedBefore = totals.usage
      sequence = 0
      items = 0
      before = 0
      output = []
      open = undefined
      return begin(toResponseId(runId, seq), agent, at)
    },
    answer_ended: null,
    message_waits: null,
    run_waits: ({ state, waits }) => {
      const asked = [
        ...waits.deferred.flatMap(functionCall),
        ...waits.approvals.flatMap((approval) => question(approval, state.agent)),
      ]
      const used = { usage: usage(state.totals.usage) }
      if (asked.length > 0) return [...asked, event('completed', { response: response('completed', used) })]
      const details = { incomplete_details: { reason: 'max_output_tokens' } }
      return [event('incomplete', { response: response('incomplete', { ...used, ...details }) })]
    },
    run_finished: ({ runId, reason, usage: total }) => {
      const used = { usage: usage(total) }
      const ending = runEndings[reason]
      if (ending === 'completed') return [event('completed', { response: response('completed', used) })]
      if (ending === 'cut' || ending === 'withheld') {
        const why = ending === 'cut' ? 'max_output_tokens' : 'content_filter'
        const more = { ...used, incomplete_details: { reason: why } }
        return [event('incomplete', { response: response('incomplete', more) })]
      }
      const error =
        ending === 'failed' ? { code: 'server_error', message: formatFailure(runId, reason) } : null
      return [event('failed', { response: response(ending, { ...used, error }) })]
    },
  }
}

/** A response is a run from an event on, until it ends or waits. */
function toResponseId(runId: string, after: number): string {
  return after === 0 ? `resp_${runId}` : `resp_${runId}_${after}`
}

/** Reads the run from the id of a response; `undefined` if this server gave no such id. */
export function parseResponseId(responseId: string): RunId | undefined {
  const [, run = ''] = /^resp_([0-9a-f-]{36})(?:_\d{1,15})?$/.exec(responseId) ?? []
  return parseRunId(run)
}

function toPart(kind: OpenPart['kind'], text: string): object {
  return kind === 'text'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type: 'summary_text', text }
}

function toMessageItem(id: string, status: string, content: readonly object[] = []): object {
  return { id, type: 'message', status, role: 'assistant', content }
}

function toReasoningItem(id: string, summary: readonly object[] = []): object {
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
  requireOptions('toOpenAiResponse', responseNames, names)
  return mapEvents('toOpenAiResponse', events$, () => createResponseTable(names))
}

/** Maps the events of a run, from its first, to chunks of OpenAI's Chat Completions. */
export function toOpenAiChat(
  events$: Observable<RuntimeEvent>,
  names: ChatNames = {},
): Observable<ChatChunk> {
  requireOptions('toOpenAiChat', chatNames, names)
  return mapEvents('toOpenAiChat', events$, () => createChunkTable(names))
}
