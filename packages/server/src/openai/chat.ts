import type { Usage } from '@tallystick/core'
import type { DeferredCall } from '@tallystick/core/internal'
import { type MoveTable, type RunEnding, runEndings } from '../stream/run-moves.ts'
import { toOpenAiError, type OpenAiError, formatFailure, subtractUsage } from './answer.ts'

/** A chunk of OpenAI's Chat Completions, or the error that ends them. */
export type ChatChunk = { readonly object: string; readonly [field: string]: unknown } | OpenAiError

/** A whole completion, or the error instead of it, with the status of the response. */
export type ChatAnswer =
  | { readonly status: 200; readonly body: { readonly [field: string]: unknown } }
  | { readonly status: number; readonly body: OpenAiError }

/** Names for a client of Chat Completions. */
export interface ChatNames {
  /** Default: the agent that the run began with. */
  readonly model?: string | undefined
  /** True if the last chunk holds the usage. */
  readonly includesUsage?: boolean | undefined
}

/**
 * Maps each move of a run to chunks of a stream. The protocol cannot take text back: if a run does, the stream ends
 * with an error, and the run continues.
 */
export function createChunkTable(names: ChatNames = {}): MoveTable<ChatChunk> {
  let isBroken = false
  const chunk = (fields: ChatFields, delta: object, finish_reason: string | null = null): ChatChunk => {
    const choice = { index: 0, delta, logprobs: null, finish_reason }
    return { ...fields, object: 'chat.completion.chunk', choices: [choice] }
  }
  return createTable<ChatChunk>(names, {
    begin(fields) {
      isBroken = false
      return [chunk(fields, { role: 'assistant', content: '' })]
    },
    add: (fields, content) => (isBroken ? [] : [chunk(fields, { content })]),
    withdraw() {
      const chunks = isBroken ? [] : [withdrawnError]
      isBroken = true
      return chunks
    },
    end(fields, end) {
      if (isBroken) return []
      if ('error' in end) return [end.error]
      const { finish, calls, usage } = end
      return [
        ...calls.map((call, index) => chunk(fields, { tool_calls: [{ index, ...call }] })),
        chunk(fields, {}, finish),
        ...(names.includesUsage ? [{ ...fields, object: 'chat.completion.chunk', choices: [], usage }] : []),
      ]
    },
  })
}

/** Maps the moves of a run to one whole completion at its end. */
export function createAnswerTable(names: ChatNames = {}): MoveTable<ChatAnswer> {
  return createTable<ChatAnswer>(names, {
    end(fields, end, text) {
      if ('error' in end) return [{ status: end.status, body: end.error }]
      const { finish, calls, usage } = end
      const asked = calls.length > 0 && { tool_calls: calls }
      const message = { role: 'assistant', content: text === '' ? null : text, refusal: null, ...asked }
      const choice = { index: 0, message, logprobs: null, finish_reason: finish }
      return [{ status: 200, body: { ...fields, object: 'chat.completion', choices: [choice], usage } }]
    },
  })
}

interface ChatFields {
  readonly id: string
  readonly created: number
  readonly model: string
}

type ChatEnd =
  | { readonly finish: string; readonly calls: readonly object[]; readonly usage: object }
  | { readonly status: number; readonly error: OpenAiError }

interface ChatOutput<Out> {
  readonly begin?: (fields: ChatFields) => readonly Out[]
  /** Gets what is added to the message. */
  readonly add?: (fields: ChatFields, text: string) => readonly Out[]
  /** Called when text that was added is withdrawn. */
  readonly withdraw?: () => readonly Out[]
  /** Gets the whole message, without withdrawn text. */
  readonly end: (fields: ChatFields, end: ChatEnd, text: string) => readonly Out[]
}

/** Follows the answer of a run as one message. Its parts are paragraphs. */
function createTable<Out>(names: ChatNames, output: ChatOutput<Out>): MoveTable<Out> {
  let usedBefore: Usage = {}
  /** The texts that were not withdrawn, one for each part. */
  let texts: string[] = []
  /** How many there were when the step began. */
  let before = 0
  let fields: ChatFields = { id: '', created: 0, model: '' }
  const begin = (runId: string, agent: string, at: number): readonly Out[] => {
    fields = { id: `chatcmpl-${runId}`, created: Math.floor(at / 1_000), model: names.model ?? agent }
    return output.begin?.(fields) ?? []
  }
  const end = (ending: ChatEnd): readonly Out[] =>
    output.end(fields, ending, texts.filter((each) => each !== '').join('\n\n'))
  const usage = (now: Usage): object => {
    const { input, cached, output: written, reasoning } = subtractUsage(now, usedBefore)
    return {
      prompt_tokens: input,
      completion_tokens: written,
      total_tokens: input + written,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }
  }
  return {
    run_started: ({ runId, agent, at }) => begin(runId, agent, at),
    input_taken: null,
    input_dropped: null,
    step_started: () => {
      before = texts.length
      return []
    },
    part_started: ({ kind }) => {
      if (kind === 'text') texts.push('')
      return []
    },
    part_added: ({ kind, text }) => {
      if (kind !== 'text' || text === '') return []
      const last = texts.pop() ?? ''
      const isParagraph = last === '' && texts.some((each) => each !== '')
      texts.push(last + text)
      return output.add?.(fields, isParagraph ? `\n\n${text}` : text) ?? []
    },
    part_ended: null,
    call_started: null,
    call_input_added: null,
    call_requested: null,
    step_withdrawn: () => {
      const isShown = texts.splice(before).some((text) => text !== '')
      return (isShown && output.withdraw?.()) || []
    },
    approval_requested: null,
    approval_decided: null,
    call_progressed: null,
    output_written: null,
    call_ended: null,
    step_ended: null,
    run_reopened: ({ state: { runId, agent, at, totals } }) => {
      usedBefore = totals.usage
      texts = []
      before = 0
      return begin(runId, agent, at)
    },
    answer_ended: null,
    message_waits: null,
    run_waits: ({ state, waits }) => {
      const used = usage(state.totals.usage)
      const [approval] = waits.approvals
      if (waits.deferred.length > 0)
        return end({ finish: 'tool_calls', calls: waits.deferred.map(toFunctionCall), usage: used })
      if (approval === undefined) return end({ finish: 'length', calls: [], usage: used })
      const { runId, toolCallId, name } = approval
      const how = `POST /runs/${runId}/approve or /deny with toolCallId ${toolCallId} decides; then the same request under the same Idempotency-Key, or GET /runs/${state.runId}/result, gives the answer.`
      const what = `Run ${state.runId} waits for a person to approve its call of ${name}, and Chat Completions has no words for that.`
      return end({ status: 409, error: toOpenAiError(409, 'approval_required', `${what} ${how}`) })
    },
    run_finished: ({ runId, reason, usage: total }) => {
      const ending = runEndings[reason]
      const finish = finishes[ending]
      if (finish !== undefined) return end({ finish, calls: [], usage: usage(total) })
      const status = ending === 'cancelled' ? 409 : 502
      return end({ status, error: toOpenAiError(status, reason, formatFailure(runId, reason)) })
    },
  }
}

const withdrawnError = toOpenAiError(
  502,
  'text_withdrawn',
  'The run withdrew text that this stream has sent: the reply failed and is asked for again, or a guardrail replaced it. The run continues. Send the request again under the same Idempotency-Key, or without stream, to get its answer.',
)

const finishes: Readonly<Partial<Record<RunEnding, string>>> = {
  completed: 'stop',
  cut: 'length',
  withheld: 'content_filter',
}

/** A call that the client runs: it sends the result in a message of the role tool. */
function toFunctionCall({ toolCallId: id, name, input }: DeferredCall): object {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } }
}
