import type { RuntimeEvent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { FinishReason, UserPart } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import {
  toAnswerId,
  toApprovalId,
  mapEvents,
  type MoveOf,
  type MoveTable,
  toResultText,
} from '../stream/run-moves.ts'

/** A chunk of the AI SDK's UI message stream, version 1. */
export type UiMessageChunk = { readonly type: string; readonly [field: string]: unknown }

const finishReasons: Partial<Record<FinishReason, string>> = {
  answered: 'stop',
  output_truncated: 'length',
  refused: 'content-filter',
  guardrail: 'content-filter',
  model_failed: 'error',
  empty_reply: 'error',
}

/** Begins the message of an answer, or continues it. */
function toStartChunk(runId: string, answer = 1): UiMessageChunk {
  return { type: 'start', messageId: toAnswerId(runId, answer), messageMetadata: { runId } }
}

/** Maps each move of a run to the AI SDK. A message is an answer of the run, and its steps are the turns. */
export const uiMessageTable: MoveTable<UiMessageChunk> = {
  run_started: ({ runId }) => [toStartChunk(runId)],
  input_taken: null,
  input_dropped: null,
  step_started: () => [{ type: 'start-step' }],
  part_started: ({ kind, partId }) => [{ type: `${kind}-start`, id: partId }],
  part_added: ({ kind, partId, text }) => [{ type: `${kind}-delta`, id: partId, delta: text }],
  part_ended: ({ kind, partId }) => [{ type: `${kind}-end`, id: partId }],
  output_written: ({ outputId: id, value: data }) => [{ type: 'data-output', id, data }],
  step_withdrawn: () => [{ type: 'reset-step' }],
  call_started: ({ toolCallId, name: toolName }) => [
    { type: 'tool-input-start', toolCallId, toolName, dynamic: true },
  ],
  call_input_added: ({ toolCallId, text }) => [
    { type: 'tool-input-delta', toolCallId, inputTextDelta: text },
  ],
  call_requested: ({ toolCallId, name: toolName, input }) => [
    { type: 'tool-input-available', toolCallId, toolName, input, dynamic: true },
  ],
  approval_requested: ({ reason, ...question }) => [
    {
      type: 'tool-approval-request',
      toolCallId: question.toolCallId,
      approvalId: toApprovalId(question),
      ...omitUndefined({ reason }),
    },
  ],
  approval_decided: ({ approved, reason, ...question }) => [
    {
      type: 'tool-approval-response',
      approvalId: toApprovalId(question),
      approved,
      ...omitUndefined({ reason }),
    },
  ],
  call_progressed: ({ toolCallId, data }) => [
    { type: 'data-progress', data: { toolCallId, progress: data }, transient: true },
  ],
  call_ended: ({ toolCallId, outcome, content }) => {
    if (outcome === 'denied') return [{ type: 'tool-output-denied', toolCallId }]
    if (outcome === 'success')
      return [{ type: 'tool-output-available', toolCallId, output: toOutput(content) }]
    return [{ type: 'tool-output-error', toolCallId, errorText: toResultText(content) }]
  },
  step_ended: () => [{ type: 'finish-step' }],
  run_reopened: ({ state, answer }) => [toStartChunk(state.runId, answer)],
  answer_ended: () => [{ type: 'finish', finishReason: 'stop' }],
  // Without a message of its own: the page shows the question where it was asked.
  message_waits: () => [{ type: 'finish', finishReason: 'tool-calls' }],
  run_waits: () => [{ type: 'finish-step' }, { type: 'finish', finishReason: 'tool-calls' }],
  run_finished: (end) => {
    const { reason, detail } = end
    const finishReason = finishReasons[reason] ?? 'other'
    const finish = { type: 'finish', finishReason, messageMetadata: toMetadata(end) }
    if (reason === 'cancelled') return [{ type: 'abort', ...omitUndefined({ reason: detail }) }, finish]
    if (reason !== 'model_failed' && reason !== 'empty_reply') return [finish]
    return [{ type: 'error', errorText: 'The model did not answer.' }, finish]
  },
}

function toOutput(content: MoveOf<'call_ended'>['content']): unknown {
  return content.every(({ type }) => type === 'text') ? toResultText(content) : content
}

function toMetadata({ runId, reason, usage, detail, costUsd }: MoveOf<'run_finished'>): object {
  return { runId, reason, usage, ...omitUndefined({ detail, costUsd }) }
}

/** Maps the events of a run, from its first, to chunks of the AI SDK's UI message stream. */
export function toUiMessages(events$: Observable<RuntimeEvent>): Observable<UiMessageChunk> {
  return mapEvents('toUiMessages', events$, () => uiMessageTable)
}

/** A message of a chat as the AI SDK keeps it. */
export interface UiMessage {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly parts: readonly UiMessagePart[]
  readonly metadata?: unknown
}

/** A part of such a message. */
export type UiMessagePart = { readonly type: string; readonly [field: string]: unknown }

type WrittenPart = Record<string, unknown> & { type: string }

/** Puts the messages of a run together, from its moves: what a page has that read all its streams. */
export class UiMessages {
  readonly messages: (UiMessage & { parts: WrittenPart[]; metadata?: unknown })[] = []
  #runId = ''
  #answer = 1
  /** Parts by their id, or by the id of their call. */
  readonly #parts = new Map<string, WrittenPart>()

  readonly table: MoveTable<never> = {
    run_started: ({ runId }) => this.#note(() => (this.#runId = runId)),
    input_taken: ({ messageId, parts, answer }) =>
      this.#note(() => {
        this.#answer = answer
        this.addInput(messageId, parts, { runId: this.#runId })
      }),
    input_dropped: ({ messageId, parts, why }) =>
      this.#note(() => this.addInput(messageId, parts, { runId: this.#runId, isUnanswered: true, why })),
    step_started: () => this.#add({ type: 'step-start' }),
    part_started: ({ kind, partId }) =>
      this.#add(
        { type: kind, ...(kind === 'reasoning' && { id: partId }), text: '', state: 'streaming' },
        partId,
      ),
    part_added: ({ partId, text }) =>
      this.#change(partId, (part) => ({ text: `${String(part['text'])}${text}` })),
    part_ended: ({ partId }) => this.#change(partId, () => ({ state: 'done' })),
    output_written: ({ outputId: id, value: data }) => {
      const part = this.#message.parts.find((each) => each['id'] === id)
      return part
        ? this.#note(() => Object.assign(part, { data }))
        : this.#add({ type: 'data-output', id, data })
    },
    step_withdrawn: () =>
      this.#note(() => {
        const { parts } = this.#message
        parts.length = parts.findLastIndex(({ type }) => type === 'step-start') + 1
      }),
    call_started: ({ toolCallId, name }) =>
      this.#add({ type: 'dynamic-tool', toolName: name, toolCallId, state: 'input-streaming' }, toolCallId),
    call_requested: ({ toolCallId, input }) =>
      this.#change(toolCallId, () => ({ state: 'input-available', input })),
    approval_requested: ({ reason, ...question }) =>
      this.#change(question.toolCallId, () => ({
        state: 'approval-requested',
        approval: { id: toApprovalId(question), ...omitUndefined({ requestReason: reason }) },
      })),
    approval_decided: ({ approved, reason, ...question }) =>
      this.#change(question.toolCallId, ({ approval }) => ({
        state: 'approval-responded',
        approval: { ...Object(approval), id: toApprovalId(question), approved, ...omitUndefined({ reason }) },
      })),
    call_ended: ({ toolCallId, outcome, content }) =>
      this.#change(toolCallId, () => {
        if (outcome === 'denied') return { state: 'output-denied' }
        if (outcome !== 'success') return { state: 'output-error', errorText: toResultText(content) }
        return { state: 'output-available', output: toOutput(content) }
      }),
    call_input_added: null,
    call_progressed: null,
    step_ended: null,
    run_reopened: null,
    answer_ended: null,
    message_waits: null,
    run_waits: null,
    run_finished: (end) =>
      this.#note(() => {
        this.#message.metadata = toMetadata(end)
      }),
  }

  /** Adds a message of the user. */
  addInput(id: string, parts: readonly UserPart[], metadata: object): void {
    this.messages.push({ id, role: 'user', parts: parts.map(toUiPart), metadata: omitUndefined(metadata) })
  }

  /** The message of the answer that the run gives now. */
  get #message(): UiMessages['messages'][number] {
    const id = toAnswerId(this.#runId, this.#answer)
    const found = this.messages.find((message) => message.id === id)
    if (found) return found
    const message = { id, role: 'assistant' as const, parts: [], metadata: { runId: this.#runId } }
    this.messages.push(message)
    return message
  }

  #add(part: WrittenPart, id?: string): readonly never[] {
    this.#message.parts.push(part)
    if (id !== undefined) this.#parts.set(id, part)
    return []
  }

  #change(id: string, change: (part: WrittenPart) => object): readonly never[] {
    const part = this.#parts.get(id)
    if (part) Object.assign(part, change(part))
    return []
  }

  #note(change: () => unknown): readonly never[] {
    change()
    return []
  }
}

function toUiPart(part: UserPart): WrittenPart {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { mediaType } = part
  const url =
    'url' in part && part.url !== undefined ? part.url : `data:${mediaType};base64,${part.data ?? ''}`
  return { type: 'file', mediaType, url, ...('name' in part && { filename: part.name }) }
}
