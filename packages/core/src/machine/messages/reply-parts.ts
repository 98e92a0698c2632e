import type { NextTurn } from '../../vocabulary/agent/output-policy.ts'
import type { AssistantPart, ToolCallPart } from '../../vocabulary/model/content.ts'
import type { EventOf } from '../../vocabulary/events/event.ts'
import type { WrittenPart } from '../../vocabulary/signals/event-parts.ts'
import { partPositions } from './part-positions.ts'

type WholeReply = Pick<EventOf<'assistant_message_finished'>, 'parts' | 'written'>

/** A part of text that is still coming: `written` is what the model wrote, where another text was shown. */
interface TextDraft {
  readonly part: number
  readonly kind: 'text' | 'reasoning'
  readonly text: string
  readonly written?: string
}

/** What has come of a reply. */
interface StreamedReply {
  readonly drafts: readonly TextDraft[]
  readonly calls: readonly (Omit<ToolCallPart, 'type'> & { readonly part: number })[]
}

/** The parts of a reply as the model wrote them. */
export function writtenParts({ parts, written = [] }: WholeReply): readonly AssistantPart[] {
  if (written.length === 0) return parts
  const byIndex = new Map(written.map(({ index, part }) => [index, part]))
  return parts.map((part, index) => byIndex.get(index) ?? part)
}

/** The parts of a reply that later turns show the model, as the policy on record says. */
export function partsOfNextTurn(nextTurn: NextTurn | undefined, reply: WholeReply): readonly AssistantPart[] {
  if (reply.written === undefined) return reply.parts
  const wrote = writtenParts(reply)
  if (nextTurn !== 'shown') return wrote
  const changed = new Set(reply.written.map(({ index }) => index))
  return reply.parts.flatMap((part, index) => {
    if (part.type === 'reasoning') return [wrote[index] ?? part]
    // No provider takes a text that is empty.
    return changed.has(index) && part.type === 'text' && part.text === '' ? [] : [part]
  })
}

/** The text of a part that is still coming, as the model wrote it. */
export function writtenText({ text, written = text }: Pick<TextDraft, 'text' | 'written'>): string {
  return written
}

/** What came of a reply that was cut off, as its message holds it. */
export function draftedReply(
  reply: StreamedReply,
): Pick<EventOf<'assistant_message_finished'>, 'parts' | 'places' | 'written'> {
  const drafted = draftedParts(reply)
  const written = drafted.flatMap(({ part, content: { type } }, index): readonly WrittenPart[] => {
    const draft = reply.drafts.find((each) => each.part === part && each.kind === type)
    if (draft?.written === undefined || draft.written === draft.text) return []
    return [{ index, part: { type: draft.kind, text: draft.written } }]
  })
  return {
    parts: drafted.map(({ content }) => content),
    ...partPositions(drafted),
    ...(written.length > 0 && { written }),
  }
}

/** What came of a reply, each part with its place. */
function draftedParts(
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
