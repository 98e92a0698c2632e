import type { RuntimeEvent } from '@tallystick/core'
import { omitUndefined, option, requireOptions } from '@tallystick/core/internal'
import type { UserPart } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import { toApprovalId, mapEvents, type MoveTable, toResultText, type RunWaits } from '../stream/run-moves.ts'

/** An event of AG-UI 1.0. */
export type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }

/** A message of AG-UI. */
export type AgUiMessage = { readonly id: string; readonly role: string; readonly [field: string]: unknown }

/** Names for a client of AG-UI. */
export interface AgUiNames {
  /** Default: the session of the run, or its id without one. */
  readonly threadId?: string | undefined
  /** A client gives each request a run of its own. Default: the id of the run. */
  readonly runId?: string | undefined
  /** The messages that the client has: they stay when text of the run is taken back. */
  readonly messages?: readonly AgUiMessage[] | undefined
}

/** Maps each move of a run to AG-UI. A snapshot of the other messages removes withdrawn text. */
export function createAgUiTable(names: AgUiNames = {}): MoveTable<AgUiEvent> {
  return new AgUiView(names).table
}

/** A run as a client of AG-UI sees it. */
class AgUiView {
  readonly #names: AgUiNames
  #threadId: string
  /** The messages that the client has by now. */
  readonly messages: AgUiMessage[]
  /** How many messages there were when the step began. */
  #before: number
  #text = ''
  /** The message whose text is being written. */
  #written: Pick<AgUiMessage, 'id' | 'role'> | undefined
  /** Calls whose input is being written, and whether any of it was sent. */
  readonly #open = new Map<string, { readonly name: string; hasInput: boolean }>()

  constructor(names: AgUiNames) {
    this.#names = names
    this.#threadId = names.threadId ?? ''
    this.messages = [...(names.messages ?? [])]
    this.#before = this.messages.length
  }

  readonly table: MoveTable<AgUiEvent> = {
    run_started: ({ runId, sessionId, parentRunId }) => {
      this.#threadId = this.#names.threadId ?? sessionId ?? runId
      return [{ type: 'RUN_STARTED', ...this.#named(runId), ...omitUndefined({ parentRunId }) }]
    },
    input_taken: null,
    input_dropped: null,
    step_started: () => {
      this.#before = this.messages.length
      return []
    },
    part_started: ({ kind, partId: messageId }) => {
      this.#text = ''
      this.#written = { id: messageId, role: kind === 'text' ? 'assistant' : 'reasoning' }
      if (kind === 'text') return [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }]
      return [
        { type: 'REASONING_START', messageId },
        { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
      ]
    },
    part_added: ({ kind, partId: messageId, text: delta }) => {
      if (delta === '') return []
      this.#text += delta
      const type = kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT'
      return [{ type, messageId, delta }]
    },
    part_ended: ({ kind, partId: messageId }) => {
      this.#keepWritten()
      if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }]
      return [
        { type: 'REASONING_MESSAGE_END', messageId },
        { type: 'REASONING_END', messageId },
      ]
    },
    output_written: ({ value }) => [{ type: 'CUSTOM', name: 'output', value }],
    call_started: ({ toolCallId, name }) => this.#startCall(toolCallId, name),
    call_input_added: ({ toolCallId, text: delta }) => {
      const open = this.#open.get(toolCallId)
      if (open === undefined || delta === '') return []
      open.hasInput = true
      return [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }]
    },
    call_requested: ({ toolCallId, name, input }) => {
      const open = this.#open.get(toolCallId)
      const text = JSON.stringify(input)
      const call = { id: toolCallId, type: 'function', function: { name, arguments: text } }
      this.messages.push({ id: toolCallId, role: 'assistant', toolCalls: [call] })
      // A stream before this one may have shown the beginning of the call, and ended it.
      const started = open ? [] : this.#startCall(toolCallId, name)
      this.#open.delete(toolCallId)
      const whole = open?.hasInput ? [] : [{ type: 'TOOL_CALL_ARGS', toolCallId, delta: text }]
      return [...started, ...whole, { type: 'TOOL_CALL_END', toolCallId }]
    },
    step_withdrawn: () => {
      const ends = this.#endOpenCalls()
      this.messages.length = this.#before
      return [...ends, { type: 'MESSAGES_SNAPSHOT', messages: [...this.messages] }]
    },
    approval_requested: null,
    approval_decided: null,
    call_progressed: ({ toolCallId, data }) => [
      { type: 'CUSTOM', name: 'tool_progress', value: { toolCallId, data } },
    ],
    call_ended: ({ toolCallId, content: parts }) => {
      const content = toResultText(parts)
      const id = `${toolCallId}.result`
      this.messages.push({ id, role: 'tool', toolCallId, content })
      return [{ type: 'TOOL_CALL_RESULT', messageId: id, toolCallId, content, role: 'tool' }]
    },
    step_ended: null,
    run_reopened: ({ state }) => this.#reopen(state.runId),
    // The run continues with a later message, in the stream of that.
    answer_ended: ({ state: { runId } }) => {
      const finished = { type: 'RUN_FINISHED', ...this.#named(runId), outcome: { type: 'success' } }
      return [...this.#endOpenCalls(), { ...finished, result: { runId } }]
    },
    message_waits: ({ state, waits }) => [...this.#reopen(state.runId), ...this.#wait(state.runId, waits)],
    run_waits: ({ state, waits }) => this.#wait(state.runId, waits),
    run_finished: ({ runId, reason, detail, text, usage, costUsd }) => {
      if (reason === 'model_failed' || reason === 'empty_reply') {
        return [{ type: 'RUN_ERROR', message: 'The model did not answer.', code: reason }]
      }
      const { inputTokens, outputTokens } = usage
      const finished: AgUiEvent = {
        type: 'RUN_FINISHED',
        ...this.#named(runId),
        outcome: { type: reason === 'cancelled' ? 'cancelled' : 'success' },
        result: { runId, reason, text, ...omitUndefined({ detail, costUsd }) },
        usage: [omitUndefined({ inputTokens, outputTokens })],
      }
      return [...this.#endOpenCalls(), finished]
    },
  }

  #named(runId: string): { readonly threadId: string; readonly runId: string } {
    return { threadId: this.#threadId, runId: this.#names.runId ?? runId }
  }

  /** Begins the rest of a run that waited, which is a run of its own for the client. */
  #keepWritten(): void {
    if (this.#written) this.messages.push({ ...this.#written, content: this.#text })
    this.#written = undefined
  }

  #reopen(runId: string): readonly AgUiEvent[] {
    // The stream before this one ended within a text: its client keeps what it has of that.
    this.#keepWritten()
    this.#open.clear()
    return [{ type: 'RUN_STARTED', ...this.#named(runId) }]
  }

  #wait(runId: string, waits: RunWaits): readonly AgUiEvent[] {
    const outcome = { type: 'interrupt', interrupts: toInterrupts(waits) }
    return [...this.#endOpenCalls(), { type: 'RUN_FINISHED', ...this.#named(runId), outcome }]
  }

  #startCall(toolCallId: string, name: string): readonly AgUiEvent[] {
    this.#open.set(toolCallId, { name, hasInput: false })
    return [{ type: 'TOOL_CALL_START', toolCallId, toolCallName: name }]
  }

  /** Ends calls whose input broke off: they are in no message. */
  #endOpenCalls(): readonly AgUiEvent[] {
    const ids = [...this.#open.keys()]
    this.#open.clear()
    return ids.map((toolCallId) => ({ type: 'TOOL_CALL_END', toolCallId }))
  }
}

export function toInterrupts(waits: RunWaits): readonly object[] {
  const approvals = waits.approvals.map((approval) => ({
    id: toApprovalId(approval),
    reason: 'tool_approval',
    toolCallId: approval.toolCallId,
    message: approval.reason ?? `May ${approval.name} run with this input?`,
    metadata: { name: approval.name, input: approval.input },
    responseSchema: {
      type: 'object',
      properties: { approved: { type: 'boolean' }, reason: { type: 'string' }, input: { type: 'object' } },
      required: ['approved'],
    },
  }))
  const deferred = waits.deferred.map(({ toolCallId, name, input, externalId }) => ({
    id: toolCallId,
    reason: 'deferred_call',
    toolCallId,
    metadata: { name, input, externalId },
  }))
  const limit = waits.limit ? [{ id: waits.limit, reason: 'limit_reached' }] : []
  return [...approvals, ...deferred, ...limit]
}

const { anyObject, anyText, fields, listOf, maybe } = option

const agUiNames = fields<AgUiNames>({
  threadId: maybe(anyText),
  runId: maybe(anyText),
  messages: maybe(listOf(anyObject)),
})

/** Maps the events of a run, from its first, to events of AG-UI. */
export function toAgUi(events$: Observable<RuntimeEvent>, names: AgUiNames = {}): Observable<AgUiEvent> {
  requireOptions('toAgUi', agUiNames, names)
  return mapEvents('toAgUi', events$, () => createAgUiTable(names))
}

/** Puts the messages of a run together, from its moves. */
export class AgUiMessages {
  readonly messages: AgUiMessage[]
  readonly table: MoveTable<unknown>

  constructor() {
    const view = new AgUiView({})
    this.messages = view.messages
    this.table = {
      ...view.table,
      input_taken: ({ messageId, parts }) => this.addInput(messageId, parts),
      input_dropped: ({ messageId, parts }) => this.addInput(messageId, parts),
    }
  }

  /** Adds a message of the user. */
  addInput(id: string, parts: readonly UserPart[]): readonly never[] {
    this.messages.push({ id, role: 'user', content: toContent(parts) })
    return []
  }
}

function toContent(parts: readonly UserPart[]): unknown {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts.map((part) => {
    if (part.type === 'text') return part
    const { mediaType, url, data } = part
    const source =
      url === undefined
        ? { type: 'data', value: data ?? '', mimeType: mediaType }
        : { type: 'url', value: url, mimeType: mediaType }
    return { type: part.type === 'image' ? 'image' : 'document', source }
  })
}
