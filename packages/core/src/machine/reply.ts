import type { NextTurn } from '../events/agent-definition.ts'
import type { AssistantPart, ReplyPart, RequestedCall } from '../events/content.ts'
import type { EventOf } from '../events/event.ts'
import type { WrittenPart } from '../events/event-parts.ts'
import { isSameJson, omitUndefined } from '../values/json.ts'
import type { Signal } from '../events/signals.ts'
import type { Attempt, PartDraft } from './state.ts'

/** The places of a reply's parts, as `assistant_message_finished` says them: nothing if they are 0, 1, 2 … */
export function toPartPositions(parts: readonly { readonly part: number }[]): {
  readonly places?: readonly number[]
} {
  return parts.every(({ part }, index) => part === index) ? {} : { places: parts.map(({ part }) => part) }
}

type WholeReply = Pick<EventOf<'assistant_message_finished'>, 'parts' | 'written'>

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
export function readWrittenText({ text, written = text }: Pick<PartDraft, 'text' | 'written'>): string {
  return written
}

/** The arrived parts of a reply that was cut off, as its message holds them. */
export function toDraftedReply({
  drafts,
  calls,
}: Attempt): Pick<EventOf<'assistant_message_finished'>, 'parts' | 'places' | 'written'> {
  const drafted = [
    ...drafts.map(({ part, kind, text, written }) => ({ part, content: { type: kind, text }, written })),
    ...calls.map(({ part, toolCallId, providerCallId, name, input, malformed, opaque }) => {
      const call = { type: 'tool_call' as const, toolCallId, providerCallId, name, input }
      return { part, content: { ...call, ...omitUndefined({ malformed, opaque }) }, written: undefined }
    }),
  ].sort((a, b) => a.part - b.part)
  const written = drafted.flatMap(({ content, written: text }, index): readonly WrittenPart[] => {
    if (content.type === 'tool_call' || text === undefined || text === content.text) return []
    return [{ index, part: { type: content.type, text } }]
  })
  return {
    parts: drafted.map(({ content }) => content),
    ...toPartPositions(drafted),
    ...(written.length > 0 && { written }),
  }
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
  for (const { part, kind, text } of attempt.drafts) {
    const reply = byPlace.get(part)
    if (reply === undefined) return `part ${part} was streamed and is missing in the finished reply`
    if (reply.type !== kind || !reply.text.startsWith(text))
      return `part ${part} is not what was streamed for it`
  }
  for (const call of attempt.calls) {
    const reply = byPlace.get(call.part)
    if (reply === undefined) return `call ${call.toolCallId} is missing in the finished reply`
    if (reply.type !== 'tool_call' || !isSameRequest(call, reply))
      return `part ${call.part} is not the call that was reported for it`
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

type Asked = Pick<RequestedCall, 'providerCallId' | 'name' | 'input'>

/** Returns whether two calls are the same to the letter. */
export function isSameRequest(one: Asked, other: Asked): boolean {
  return (
    one.providerCallId === other.providerCallId &&
    one.name === other.name &&
    isSameJson(one.input, other.input)
  )
}
