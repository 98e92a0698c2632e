import { computeDigest } from './digest.ts'

declare const brand: unique symbol

/**
 * Names one run. A UUIDv7 begins with the time it was made, that of a child run with its parent's; a run that an
 * idempotency key begins has a UUIDv8, which tells no time. So ids do not order runs; order within a run is by `seq`.
 */
export type RunId = string & { readonly [brand]: 'RunId' }

/**
 * Names one tool call, for ever and everywhere: screen, model history and ledger. The runtime mints it; what the
 * provider calls the same call rides along as `providerCallId`, since providers repeat their ids.
 */
export type ToolCallId = string & { readonly [brand]: 'ToolCallId' }

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Reads a run id from outside; `undefined` when the text is not one. */
export function parseRunId(text: string): RunId | undefined {
  return uuidShape.test(text) ? (text as RunId) : undefined
}

/** The time at which a run id was made, in milliseconds since 1970 UTC; `undefined` for one that tells no time. */
export function extractTime(runId: RunId): number | undefined {
  return runId[14] === '7' ? Number.parseInt(runId.slice(0, 8) + runId.slice(9, 13), 16) : undefined
}

/** Reads a tool call id from outside; `undefined` when the text is not one. */
export function parseToolCallId(text: string): ToolCallId | undefined {
  return /^call_[0-9a-f]{32}_\d+_\d+_\d+$/.test(text) ? (text as ToolCallId) : undefined
}

/** The run that a tool call belongs to; `undefined` if the text is not a tool call id. */
export function extractRunId(toolCallId: string): RunId | undefined {
  if (parseToolCallId(toolCallId) === undefined) return undefined
  const hex = toolCallId.slice('call_'.length, 'call_'.length + 32)
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return groups.join('-') as RunId
}

/**
 * The id of the `ordinal`-th call (from 1) of one model attempt. Derived, not drawn, so that replaying a run mints
 * the same ids; unique, because a run id is. Fits every vendor's alphabet (`[A-Za-z0-9_-]`, at most 64).
 */
export function deriveToolCallId(runId: RunId, turn: number, attempt: number, ordinal: number): ToolCallId {
  return `call_${runId.replaceAll('-', '')}_${turn}_${attempt}_${ordinal}` as ToolCallId
}

/** The key by which the outside world tells a second attempt from a second order: the run, and the call's place. */
export function deriveIdempotencyKey(runId: RunId, toolCallId: ToolCallId): string {
  return runId + toolCallId.slice('call_'.length + 32)
}

/**
 * The run that does the work of a call: derived, so that every attempt of the call finds the same run. Shaped as a
 * UUIDv7 of its parent's time.
 */
export function deriveChildRunId(runId: RunId, toolCallId: ToolCallId): RunId {
  const digest = computeDigest(deriveIdempotencyKey(runId, toolCallId))
  const variant = '89ab'[Number.parseInt(digest.slice(3, 4), 16) % 4]
  return `${runId.slice(0, 13)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}` as RunId
}

/**
 * The run that an idempotency key begins: derived, so that every process that is given the key finds the same run, and
 * each store takes its first event once. A UUIDv8: it tells no time.
 */
export function deriveRunId(key: string): RunId {
  const digest = computeDigest(['run of key', key])
  const variant = '89ab'[Number.parseInt(digest.slice(31, 32), 16) % 4]
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(12, 15)}-${variant}${digest.slice(15, 18)}-${digest.slice(18, 30)}` as RunId
}
