import { idempotencyKeyOf, type RunId, type ToolCallId } from './ids.ts'
import { digestOf } from './digest.ts'

/**
 * The run that does the work of a call: derived, so that every attempt of the call finds the same run. Shaped as a
 * UUIDv7 of its parent's time.
 */
export function childRunIdOf(runId: RunId, toolCallId: ToolCallId): RunId {
  const digest = digestOf(idempotencyKeyOf(runId, toolCallId))
  const variant = '89ab'[Number.parseInt(digest.slice(3, 4), 16) % 4]
  return `${runId.slice(0, 13)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}` as RunId
}
