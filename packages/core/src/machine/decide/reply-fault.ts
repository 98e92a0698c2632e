import type { RequestedCall } from '../../vocabulary/model/content.ts'
import { isSameJson } from '../../vocabulary/values/json.ts'
import type { ReplyPart, Signal } from '../../vocabulary/signals/signal.ts'
import type { Attempt, Call, PartDraft } from '../state/state.ts'

/**
 * What an adapter's finished reply contradicts: the order of its own parts, the text that was streamed, or the calls
 * that were reported. `undefined` if it contradicts nothing. Law 12 depends on it.
 */
export function replyFault(attempt: Attempt, parts: readonly ReplyPart[]): string | undefined {
  if (parts.some(({ part }, index) => index > 0 && part <= (parts[index - 1] as ReplyPart).part)) {
    return 'the parts of the finished reply are not in ascending order'
  }
  const byPlace = new Map(parts.map((reply) => [reply.part, reply]))
  for (const draft of attempt.drafts) {
    const fault = draftFault(draft, byPlace.get(draft.part))
    if (fault) return fault
  }
  for (const call of attempt.calls) {
    const fault = callFault(call, byPlace.get(call.part))
    if (fault) return fault
  }
  return undefined
}

/**
 * Whether a whole reply says nothing: no call, no block of the vendor's, no word and no citation. Reasoning alone is no
 * answer. What `outputStream` of the agent keeps from the user was said all the same.
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

function draftFault({ part, kind, text }: PartDraft, reply: ReplyPart | undefined): string | undefined {
  if (reply === undefined) return `part ${part} was streamed and is missing in the finished reply`
  if (reply.type === kind && reply.text.startsWith(text)) return undefined
  return `part ${part} is not what was streamed for it`
}

function callFault(call: Call, reply: ReplyPart | undefined): string | undefined {
  if (reply === undefined) return `call ${call.toolCallId} is missing in the finished reply`
  if (reply.type === 'tool_call' && isSameRequest(call, reply)) return undefined
  return `part ${call.part} is not the call that was reported for it`
}

/** Whether two calls are the same to the letter. */
export function isSameRequest(one: Asked, other: Asked): boolean {
  return (
    one.providerCallId === other.providerCallId &&
    one.name === other.name &&
    isSameJson(one.input, other.input)
  )
}

/** The fields that make two calls different. */
type Asked = Pick<RequestedCall, 'providerCallId' | 'name' | 'input'>
