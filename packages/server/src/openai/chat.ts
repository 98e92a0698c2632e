import type { RunState, Usage } from '@tallystick/core'
import type { DeferredCall } from '@tallystick/core/internal'
import type { MoveOf, MoveTable } from '../stream/run-moves.ts'
import {
  type OpenAiEnding,
  openAiEndings,
  toOpenAiError,
  type FacadeError,
  formatFailure,
  subtractUsage,
} from './answer.ts'

/** A chunk of OpenAI's Chat Completions, or the error that ends them. */
export type ChatChunk = { readonly object: string; readonly [field: string]: unknown } | FacadeError

/** A whole completion, or the error instead of it, with the status of the response. */
export type ChatAnswer =
  | { readonly status: 200; readonly body: { readonly [field: string]: unknown } }
  | { readonly status: number; readonly body: FacadeError }

/** Names for a client of Chat Completions. */
export interface ChatNames {
  /** Default: the agent that the run began with. */
  readonly model?: string | undefined
  /** Whether the last chunk holds the usage. */
  readonly includesUsage?: boolean | undefined
}

/**
 * Maps each move of a run to chunks of a stream. The protocol cannot take text back: if a run does, the stream ends
 * with an error, and the run continues.
 */
export function createChunkTable(names: ChatNames = {}): MoveTable<ChatChunk> {
  const chat = new Chat(names)
  let isBroken = false
  const unlessBroken = (chunks: readonly ChatChunk[]): readonly ChatChunk[] => (isBroken ? [] : chunks)
  const begin = (): readonly ChatChunk[] => {
    isBroken = false
    return [chat.chunk({ role: 'assistant', content: '' })]
  }
  return {
    ...unused,
    run_started: (move) => (chat.start(move), begin()),
    run_reopened: ({ state }) => (chat.reopen(state), begin()),
    step_started: () => chat.beginStep(),
    part_started: (move) => chat.startPart(move),
    part_added: (move) => {
      const content = chat.add(move)
      return unlessBroken(content === '' ? [] : [chat.chunk({ content })])
    },
    step_withdrawn: () => {
      const withdrawn = chat.withdraw()
      const chunks = unlessBroken(withdrawn ? [withdrawnError] : [])
      isBroken ||= withdrawn
      return chunks
    },
    run_waits: (move) => unlessBroken(toChunks(chat, chat.endOfWait(move))),
    run_finished: (move) => unlessBroken(toChunks(chat, chat.endOfRun(move))),
  }
}

/** Maps the moves of a run to one whole completion at its end. */
export function createAnswerTable(names: ChatNames = {}): MoveTable<ChatAnswer> {
  const chat = new Chat(names)
  const silently =
    <Move>(learn: (move: Move) => unknown) =>
    (move: Move): readonly ChatAnswer[] => {
      learn(move)
      return []
    }
  return {
    ...unused,
    run_started: silently((move) => chat.start(move)),
    run_reopened: silently(({ state }) => chat.reopen(state)),
    step_started: silently(() => chat.beginStep()),
    part_started: silently((move) => chat.startPart(move)),
    part_added: silently((move) => chat.add(move)),
    step_withdrawn: silently(() => chat.withdraw()),
    run_waits: (move) => [toAnswer(chat, chat.endOfWait(move))],
    run_finished: (move) => [toAnswer(chat, chat.endOfRun(move))],
  }
}

const unused = {
  input_taken: null,
  input_dropped: null,
  part_ended: null,
  call_started: null,
  call_input_added: null,
  call_requested: null,
  approval_requested: null,
  approval_decided: null,
  call_progressed: null,
  call_ended: null,
  step_ended: null,
  answer_ended: null,
  message_waits: null,
}

/** How a completion ends. */
type ChatEnd =
  | { readonly finish: string; readonly calls: readonly object[]; readonly usage: object }
  | { readonly status: number; readonly error: FacadeError }

const withdrawnError = toOpenAiError(
  502,
  'text_withdrawn',
  'The run took text back that this stream has sent: the reply failed and is asked for anew, or a guardrail replaced it. The run continues. Send the request again under the same Idempotency-Key, or without stream, to get its answer.',
)

const finishes: Readonly<Partial<Record<OpenAiEnding, string>>> = {
  completed: 'stop',
  cut: 'length',
  withheld: 'content_filter',
}

function toChunks(chat: Chat, end: ChatEnd): readonly ChatChunk[] {
  if ('error' in end) return [end.error]
  const { finish, calls, usage } = end
  const asked = calls.map((call, index) => chat.chunk({ tool_calls: [{ index, ...call }] }))
  return [...asked, chat.chunk({}, finish), ...(chat.includesUsage ? [chat.usageChunk(usage)] : [])]
}

function toAnswer(chat: Chat, end: ChatEnd): ChatAnswer {
  if ('error' in end) return { status: end.status, body: end.error }
  return { status: 200, body: chat.completion(end.finish, end.calls, end.usage) }
}

/** The answer of a run as one message. */
class Chat {
  readonly #names: ChatNames
  #fields: { readonly id: string; readonly created: number; readonly model: string } | undefined
  #usedBefore: Usage = {}
  /** The texts that were not taken back, one for each part. */
  #texts: string[] = []
  /** How many there were when the step began. */
  #before = 0

  constructor(names: ChatNames) {
    this.#names = names
  }

  get includesUsage(): boolean {
    return this.#names.includesUsage ?? false
  }

  start({ runId, agent, at }: MoveOf<'run_started'>): void {
    this.#begin(runId, agent, at)
  }

  reopen({ runId, agent, at, totals }: RunState): void {
    this.#usedBefore = totals.usage
    this.#texts = []
    this.#before = 0
    this.#begin(runId, agent, at)
  }

  #begin(runId: string, agent: string, at: number): void {
    this.#fields = {
      id: `chatcmpl-${runId}`,
      created: Math.floor(at / 1_000),
      model: this.#names.model ?? agent,
    }
  }

  beginStep(): readonly never[] {
    this.#before = this.#texts.length
    return []
  }

  startPart({ kind }: MoveOf<'part_started'>): readonly never[] {
    if (kind === 'text') this.#texts.push('')
    return []
  }

  /** Returns what is added to the message: the parts are paragraphs of it. */
  add({ kind, text }: MoveOf<'part_added'>): string {
    if (kind !== 'text' || text === '') return ''
    const [last, earlier] = [this.#texts.pop() ?? '', this.#texts.some((each) => each !== '')]
    this.#texts.push(last + text)
    return last === '' && earlier ? `\n\n${text}` : text
  }

  /** Takes back what the step has said, and returns whether that was anything. */
  withdraw(): boolean {
    return this.#texts.splice(this.#before).some((text) => text !== '')
  }

  endOfWait({ state, waits }: MoveOf<'run_waits'>): ChatEnd {
    const usage = this.#usage(state.totals.usage)
    if (waits.deferred.length > 0) return { finish: 'tool_calls', calls: waits.deferred.map(toCall), usage }
    const [approval] = waits.approvals
    if (approval === undefined) return { finish: 'length', calls: [], usage }
    const { runId, toolCallId, name } = approval
    const how = `POST /runs/${runId}/approve or /deny with toolCallId ${toolCallId} decides; then the same request under the same Idempotency-Key, or GET /runs/${state.runId}/result, gives the answer.`
    const what = `Run ${state.runId} waits for a person to approve its call of ${name}, and Chat Completions has no words for that.`
    return { status: 409, error: toOpenAiError(409, 'approval_required', `${what} ${how}`) }
  }

  endOfRun({ runId, reason, usage }: MoveOf<'run_finished'>): ChatEnd {
    const ending = openAiEndings[reason]
    const finish = finishes[ending]
    if (finish !== undefined) return { finish, calls: [], usage: this.#usage(usage) }
    const status = ending === 'cancelled' ? 409 : 502
    return { status, error: toOpenAiError(status, reason, formatFailure(runId, reason)) }
  }

  #usage(now: Usage): object {
    const { input, cached, output, reasoning } = subtractUsage(now, this.#usedBefore)
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoning },
    }
  }

  chunk(delta: object, finish_reason: string | null = null): ChatChunk {
    const choice = { index: 0, delta, logprobs: null, finish_reason }
    return { ...this.#fields, object: 'chat.completion.chunk', choices: [choice] }
  }

  usageChunk(usage: object): ChatChunk {
    return { ...this.#fields, object: 'chat.completion.chunk', choices: [], usage }
  }

  completion(
    finish_reason: string,
    calls: readonly object[],
    usage: object,
  ): { readonly [field: string]: unknown } {
    const text = this.#texts.filter((each) => each !== '').join('\n\n')
    const asked = calls.length > 0 && { tool_calls: calls }
    const message = { role: 'assistant', content: text === '' ? null : text, refusal: null, ...asked }
    const choice = { index: 0, message, logprobs: null, finish_reason }
    return { ...this.#fields, object: 'chat.completion', choices: [choice], usage }
  }
}

/** A call that the client runs: it sends the result in a message of the role tool. */
function toCall({ toolCallId: id, name, input }: DeferredCall): object {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } }
}
