import { omitUndefined } from '@tallystick/core/kit'
import { type JsonObject, type ToolCallId } from '@tallystick/core/vocabulary'
import type { Carried } from '../../openai/request/media.ts'
import { textAt } from '../../shared/json/json-reading.ts'
import { inObject } from '../../shared/reply/call-input.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { WholeQuirks } from '../options/quirks.ts'
import type { RenderedMessage, RenderedReply } from './rendered-message.ts'

/** What the whole request decides about the messages in it. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
  readonly quirks: Pick<
    WholeQuirks,
    'alternatingRoles' | 'replayReasoning' | 'reasoningPlaceholder' | 'readsArguments' | 'signsCalls'
  >
}

const opening = '(The conversation begins here.)'
const bridge = '(The results are in.)'

/**
 * The history as these servers accept it: every call is answered right after the message that asked, results hold text
 * only, what they showed comes after all of them, and no reply is empty.
 */
export function messagesOf(
  renderedMessages: readonly RenderedMessage[],
  binding: Binding,
): readonly JsonObject[] {
  const aloud = repliesAloud(renderedMessages, binding)
  const messages = renderedMessages.flatMap((rendered, place): JsonObject[] => {
    switch (rendered.role) {
      case 'user':
        return [userMessage(rendered.pieces)]
      case 'assistant':
        return assistantMessage(rendered, binding, aloud.has(place))
      case 'tool': {
        const answers = rendered.answers.map((answer): JsonObject => ({
          role: 'tool',
          tool_call_id: idOf(answer.toolCallId, binding),
          content: answer.text,
        }))
        return rendered.shown.length > 0 ? [...answers, userMessage(rendered.shown)] : answers
      }
    }
  })
  if (binding.quirks.alternatingRoles) return alternating(messages)
  return messages.length > 0 ? messages : [{ role: 'user', content: opening }]
}

/** The places of the replies whose reasoning goes back with them. A turn is what lies between two messages of the user. */
function repliesAloud(
  messages: readonly RenderedMessage[],
  { quirks: { replayReasoning } }: Binding,
): ReadonlySet<number> {
  const places = new Set<number>()
  let turn: number[] = []
  let hasCalls = false
  const endTurn = (isOpen: boolean): void => {
    const isAloud =
      replayReasoning === 'always' ||
      (replayReasoning !== 'never' && isOpen) ||
      (replayReasoning === 'turns_with_calls' && hasCalls)
    if (isAloud) for (const place of turn) places.add(place)
    turn = []
    hasCalls = false
  }
  for (const [place, message] of messages.entries()) {
    if (message.role === 'user') endTurn(false)
    if (message.role !== 'assistant') continue
    turn.push(place)
    hasCalls ||= message.calls.length > 0
  }
  endTurn(true)
  return places
}

function idOf(toolCallId: ToolCallId, { ids }: Binding): string {
  return ids.get(toolCallId) ?? toolCallId
}

function userMessage(pieces: readonly Carried[]): JsonObject {
  const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.text] : []))
  // Many servers take nothing but a text here, so it is one wherever it can be.
  const plain = texts.length === pieces.length
  return { role: 'user', content: plain ? texts.join('\n\n') : pieces.map(contentPart) }
}

function contentPart(piece: Carried): JsonObject {
  switch (piece.kind) {
    case 'text':
      return { type: 'text', text: piece.text }
    case 'image':
      return { type: 'image_url', image_url: { url: piece.url, ...omitUndefined({ detail: piece.detail }) } }
    case 'pdf':
      return { type: 'file', file: { filename: piece.name, file_data: piece.data ?? '' } }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: piece.data, format: piece.format } }
    case 'kept':
      return { type: 'file', file: { file_id: piece.fileId } }
  }
}

function assistantMessage(rendered: RenderedReply, binding: Binding, aloud: boolean): JsonObject[] {
  const { calls, text, refusal, message } = rendered
  const { quirks } = binding
  if (calls.length === 0 && text.trim() === '' && refusal.trim() === '') return []
  const toolCalls = calls.map(({ toolCallId, name, body, unread }, place) => {
    const kind = body['type'] === 'custom' ? 'custom' : 'function'
    const asked = {
      ...(body[kind] as JsonObject),
      ...(unread !== undefined && { arguments: quirks.readsArguments ? inObject(unread) : unread }),
      name: binding.names.toWire(name),
    }
    const unsigned = quirks.signsCalls && place === 0 && body['extra_content'] === undefined
    return { id: idOf(toolCallId, binding), ...body, ...(unsigned && noSignature), [kind]: asked }
  })
  return [
    {
      role: 'assistant',
      content: contentOf(rendered, aloud),
      ...message,
      ...(aloud && replayedReasoning(rendered, quirks)),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
  ]
}

/** Google's word for a call that another model made, which nobody can have signed. */
const noSignature: JsonObject = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
}

/** The fields of a reply's reasoning, or what stands for it where the server does without none. */
function replayedReasoning(
  { reasoning, calls }: RenderedReply,
  { reasoningPlaceholder: placeholder }: Binding['quirks'],
): JsonObject | undefined {
  if (calls.length === 0 || placeholder === false || textAt(reasoning, 'reasoning_content')) return reasoning
  return { ...reasoning, reasoning_content: placeholder }
}

function contentOf(
  { text, refusal, thoughts }: RenderedReply,
  aloud: boolean,
): readonly JsonObject[] | string | null {
  const thinking = aloud && thoughts !== ''
  if (!thinking && refusal === '') return text === '' ? null : text
  return [
    ...(thinking ? [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] : []),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...(refusal === '' ? [] : [{ type: 'refusal', refusal }]),
  ]
}

/** For templates that know nothing but turns: neighbours of one role become one, and the user begins. */
function alternating(messages: readonly JsonObject[]): readonly JsonObject[] {
  const turns: JsonObject[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    const neighbour = last !== undefined && message['role'] !== 'tool' && last['role'] === message['role']
    if (neighbour && last['tool_calls'] === undefined) turns.push(merged(turns.pop()!, message))
    else if (last?.['role'] === 'tool' && message['role'] === 'user') {
      turns.push({ role: 'assistant', content: bridge }, message)
    } else turns.push(message)
  }
  return turns[0]?.['role'] === 'user' ? turns : [{ role: 'user', content: opening }, ...turns]
}

function merged(before: JsonObject, after: JsonObject): JsonObject {
  const [first, second] = [before['content'] ?? '', after['content'] ?? '']
  const content =
    typeof first === 'string' && typeof second === 'string'
      ? [first, second].filter((text) => text !== '').join('\n\n')
      : [...partsOf(first), ...partsOf(second)]
  return { ...before, ...after, content: content === '' ? null : content }
}

function partsOf(content: unknown): readonly JsonObject[] {
  if (typeof content !== 'string') return content as readonly JsonObject[]
  return content === '' ? [] : [{ type: 'text', text: content }]
}
