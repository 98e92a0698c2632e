import type { NextTurn } from '../events/agent-definition.ts'
import type { AssistantPart, ReplyPart, RequestedCall, ToolCallPart } from '../events/content.ts'
import type { EventOf } from '../events/event.ts'
import type { WrittenPart } from '../events/event-parts.ts'
import { isSameJson } from '../values/json.ts'
import type { Signal } from '../events/signals.ts'
import type { Attempt, Call, PartDraft } from './state.ts'

/** The places of a reply's parts, as `assistant_message_finished` says them: nothing where they are 0, 1, 2 … */
export function toPartPositions(parts: readonly { readonly part: number }[]): {
  readonly places?: readonly number[]
} {
  return parts.every(({ part }, index) => part === index) ? {} : { places: parts.map(({ part }) => part) }
}

type WholeReply = Pick<EventOf<'assistant_message_finished'>, 'parts' | 'written'>

/** A part of text that is still coming: `written` is what the model wrote, where another text was shown. */
interface TextDraft {
  readonly part: number
  readonly kind: 'text' | 'reasoning'
  readonly text: string
  readonly written?: string
}

/** The parts of a reply that have arrived. */
interface StreamedReply {
  readonly drafts: readonly TextDraft[]
  readonly calls: readonly (Omit<ToolCallPart, 'type'> & { readonly part: number })[]
}

/** The parts of a reply as the model wrote them. */
export function listWrittenParts({ parts, written = [] }: WholeReply): readonly AssistantPart[] {
  if (written.length === 0) return parts
  const byIndex = new Map(written.map(({ index, part }) => [index, part]))
  return parts.map((part, index) => byIndex.get(index) ?? part)
}

/** The parts of a reply that later turns show the model, as the policy on record says. */
export function toNextTurnParts(nextTurn: NextTurn | undefined, reply: WholeReply): readonly AssistantPart[] {
  if (reply.written === undefined) return reply.parts
  const wrote = listWrittenParts(reply)
  if (nextTurn !== 'shown') return wrote
  const changed = new Set(reply.written.map(({ index }) => index))
  return reply.parts.flatMap((part, index) => {
    if (part.type === 'reasoning') return [wrote[index] ?? part]
    // No provider takes a text that is empty.
    return changed.has(index) && part.type === 'text' && part.text === '' ? [] : [part]
  })
}

/** The text of a part that is still coming, as the model wrote it. */
export function readWrittenText({ text, written = text }: Pick<TextDraft, 'text' | 'written'>): string {
  return written
}

/** The arrived parts of a reply that was cut off, as its message holds them. */
export function toDraftedReply(
  reply: StreamedReply,
): Pick<EventOf<'assistant_message_finished'>, 'parts' | 'places' | 'written'> {
  const drafted = toDraftedParts(reply)
  const written = drafted.flatMap(({ part, content: { type } }, index): readonly WrittenPart[] => {
    const draft = reply.drafts.find((each) => each.part === part && each.kind === type)
    if (draft?.written === undefined || draft.written === draft.text) return []
    return [{ index, part: { type: draft.kind, text: draft.written } }]
  })
  return {
    parts: drafted.map(({ content }) => content),
    ...toPartPositions(drafted),
    ...(written.length > 0 && { written }),
  }
}

/** The arrived parts of a reply, each with its place. */
function toDraftedParts(
  reply: StreamedReply,
): readonly { readonly part: number; readonly content: AssistantPart }[] {
  const texts = reply.drafts.map(({ part, kind, text }) => ({ part, content: { type: kind, text } }))
  const calls = reply.calls.map(({ part, toolCallId, providerCallId, name, input, malformed, opaque }) => ({
    part,
    content: {
      type: 'tool_call' as const,
      toolCallId,
      providerCallId,
      name,
      input,
      ...(malformed !== undefined && { malformed }),
      ...(opaque !== undefined && { opaque }),
    },
  }))
  return [...texts, ...calls].sort((a, b) => a.part - b.part)
}

/**
 * How an adapter's finished reply contradicts the order of its own parts, the text that was streamed, or the calls
 * that were reported. `undefined` if it contradicts nothing. Law 12 depends on it.
 */
export function findReplyFault(attempt: Attempt, parts: readonly ReplyPart[]): string | undefined {
  if (parts.some(({ part }, index) => index > 0 && part <= (parts[index - 1] as ReplyPart).part)) {
    return 'the parts of the finished reply are not in ascending order'
  }
  const byPlace = new Map(parts.map((reply) => [reply.part, reply]))
  for (const draft of attempt.drafts) {
    const fault = findDraftFault(draft, byPlace.get(draft.part))
    if (fault) return fault
  }
  for (const call of attempt.calls) {
    const fault = findCallFault(call, byPlace.get(call.part))
    if (fault) return fault
  }
  return undefined
}

/**
 * Returns whether a whole reply says nothing: no call, no block of the vendor's, no word and no citation. Reasoning alone is not
 * an answer. What `outputStream` of the agent keeps from the user was said all the same.
 */
export function isEmptyReply({
  stopReason,
  parts,
  written = [],
}: Extract<Signal, { type: 'model_finished' }>): boolean {
  if (stopReason !== 'end' && stopReason !== 'tool_use' && stopReason !== 'other') return false
  return [...parts, ...written].every(
    (part) =>
      part.type === 'reasoning' ||
      (part.type === 'text' && part.text.trim() === '' && (part.citations ?? []).length === 0),
  )
}

function findDraftFault({ part, kind, text }: PartDraft, reply: ReplyPart | undefined): string | undefined {
  if (reply === undefined) return `part ${part} was streamed and is missing in the finished reply`
  if (reply.type === kind && reply.text.startsWith(text)) return undefined
  return `part ${part} is not what was streamed for it`
}

function findCallFault(call: Call, reply: ReplyPart | undefined): string | undefined {
  if (reply === undefined) return `call ${call.toolCallId} is missing in the finished reply`
  if (reply.type === 'tool_call' && isSameRequest(call, reply)) return undefined
  return `part ${call.part} is not the call that was reported for it`
}

/** Returns whether two calls are the same to the letter. */
export function isSameRequest(one: Asked, other: Asked): boolean {
  return (
    one.providerCallId === other.providerCallId &&
    one.name === other.name &&
    isSameJson(one.input, other.input)
  )
}

/** The fields that make two calls different. */
type Asked = Pick<RequestedCall, 'providerCallId' | 'name' | 'input'>
