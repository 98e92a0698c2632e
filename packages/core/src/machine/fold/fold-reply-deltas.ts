import type { EventOf } from '../../vocabulary/events/event.ts'
import { illegal } from './illegal.ts'
import { withPart } from '../messages/call-parts.ts'
import { withNewCall } from '../state/turn-calls.ts'
import type { Attempt, Call, PartDraft, RunState } from '../state/state.ts'
import { estimatedTokens } from '../messages/token-estimate.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { writtenText } from '../messages/reply-parts.ts'

/** Applies arrived text or reasoning: appended to the same part, or replacing it. */
export function withDelta(
  attempt: Attempt,
  event: EventOf<'assistant_text_delta'> | EventOf<'assistant_reasoning_delta'>,
): Attempt {
  const kind = event.type === 'assistant_text_delta' ? 'text' : 'reasoning'
  const { drafts } = attempt
  const streamedTokens = attempt.streamedTokens + estimatedTokens(event.written ?? event.text)
  const index = drafts.findLastIndex((draft) => draft.part === event.part && draft.kind === kind)
  const draft = drafts[index]
  return {
    ...attempt,
    streamedTokens,
    drafts: draft
      ? drafts.with(index, withMoreText(draft, event))
      : [...drafts, draftOf(event.part, kind, event)],
  }
}

type MoreText = Pick<EventOf<'assistant_text_delta'>, 'text' | 'written' | 'replaces'>

function draftOf(part: number, kind: PartDraft['kind'], { text, written }: MoreText): PartDraft {
  return { part, kind, text, ...omitUndefined({ written }) }
}

function withMoreText(draft: PartDraft, event: MoreText): PartDraft {
  const { part, kind } = draft
  if (event.replaces) return draftOf(part, kind, event)
  const text = draft.text + event.text
  const differs = draft.written !== undefined || event.written !== undefined
  const written = differs ? writtenText(draft) + (event.written ?? event.text) : undefined
  return draftOf(part, kind, { text, ...omitUndefined({ written }) })
}

/** More of a call's input came. With the first of it, the call takes its place among the calls. */
export function withToolInput(attempt: Attempt, { part, text }: EventOf<'tool_input_delta'>): Attempt {
  const streamedTokens = attempt.streamedTokens + estimatedTokens(text)
  return { ...attempt, callParts: withPart(attempt.callParts, part), streamedTokens }
}

/** A request is whole: it takes its place among the calls of the reply. Its place and its id must be new. */
export function withRequest(
  state: RunState,
  attempt: Attempt,
  event: EventOf<'tool_request_ready'>,
): Attempt {
  const { toolCallId, part, providerCallId, name, input, malformed, opaque } = event
  const { calls: earlier } = attempt
  const ids = idsOf(earlier)
  // By place in the reply: the order in which the message names them.
  const place = earlier.findLastIndex((known) => known.part < part) + 1
  if (ids.has(toolCallId) || earlier[place]?.part === part) {
    throw illegal(state, event, `call ${toolCallId} or part ${part} was requested before`)
  }
  const call: Call = {
    toolCallId,
    part,
    providerCallId,
    name,
    input,
    status: 'requested',
    attempts: 0,
    ...(event.removed && { inputRemoved: true as const }),
    ...(malformed !== undefined && { malformed }),
    ...(opaque !== undefined && { opaque }),
  }
  const calls = place === earlier.length ? withNewCall(earlier, call) : earlier.toSpliced(place, 0, call)
  ids.add(toolCallId)
  if (calls !== earlier) {
    knownIds.delete(earlier)
    knownIds.set(calls, ids)
  }
  return { ...attempt, callParts: withPart(attempt.callParts, part), calls }
}

/** The ids of calls, by the calls. The set grows with its calls, so only the newest array keeps it. */
const knownIds = new WeakMap<readonly Call[], Set<string>>()

function idsOf(calls: readonly Call[]): Set<string> {
  const known = knownIds.get(calls)
  if (known) return known
  const ids = new Set<string>(calls.map(({ toolCallId }) => toolCallId))
  knownIds.set(calls, ids)
  return ids
}
