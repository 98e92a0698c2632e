import { parseRunId, parseToolCallId } from '../values/ids.ts'
import { isMoment } from '../values/moment.ts'
import type { EventEnvelope } from './event.ts'

/** Fields of the envelope that few events have. */
const rareFields = ['cause', 'inboxKey', 'draining', 'removed'] as const

/**
 * Whether the envelope of an event is sound, and has none of the fields that few events have. Spares nearly all events the
 * schema of the envelope, which takes every envelope that this takes; and the schema of events that name their call, where
 * one is named.
 */
export function isPlainEnvelope(event: EventEnvelope): boolean {
  const { runId, seq, epoch, turn, at, v, toolCallId } = event
  return (
    typeof runId === 'string' &&
    parseRunId(runId) !== undefined &&
    isFrom(1, seq) &&
    isFrom(1, epoch) &&
    isFrom(0, turn) &&
    isFrom(1, v) &&
    isMoment(at) &&
    (toolCallId === undefined ? !('toolCallId' in event) : isCall(toolCallId)) &&
    !rareFields.some((field) => field in event)
  )
}

/** Whether an event of a type is a sound piece of a reply. Spares the events that are most of a ledger the schema of their body. */
export function isPlainDelta(type: string, event: object): boolean {
  const { attempt, part, text, name } = event as Readonly<Record<string, unknown>>
  const isPiece = typeof text === 'string' && isFrom(1, attempt) && isFrom(0, part)
  if (!isPiece || 'replaces' in event || 'written' in event) return false
  return (
    type === 'assistant_text_delta' ||
    type === 'assistant_reasoning_delta' ||
    (type === 'tool_input_delta' && typeof name === 'string')
  )
}

function isFrom(min: number, value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min
}

function isCall(value: unknown): boolean {
  return typeof value === 'string' && parseToolCallId(value) !== undefined
}
