import type { AppendOptions, ExpectedHead, Head, Lease, TailCursor } from './ledger.ts'
import { ConfigurationError, LedgerConflictError } from '../values/errors.ts'
import { requireAppend } from './queries.ts'
import { type EventOf, type EventType, findEventIdFault, type RuntimeEvent } from '../events/event.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { isMoment } from '../events/event-parts.ts'
import { computeHistoryDigests } from '../machine/history.ts'
import type { Message } from '../events/content.ts'
import { toCanonicalJson, getOwn, type Json } from '../values/json.ts'
import { anyText, requireOptions } from '../values/option.ts'

/** The head of a run before its first event, which its first append expects. */
export const emptyHead: { readonly seq: 0; readonly epoch: 1 } = { seq: 0, epoch: 1 }

/** The key under which a run may hold an event only once; `null` for types that it may repeat. */
const onceKeys: { readonly [T in EventType]: ((event: EventOf<T>) => string | undefined) | null } = {
  run_started: null,
  schedule_set: null,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
  history_edited: null,
  run_resumed: null,
  run_finished: () => '',
  input_received: null,
  input_settled: null,
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: null,
  model_stream_failed: null,
  tool_requests_collected: null,
  approval_requested: null,
  approval_added: null,
  approval_applied: null,
  approval_withdrawn: null,
  // A decision of another run is asked for again.
  approval_decided: ({ toolCallId, attempt, elsewhere }) =>
    elsewhere ? undefined : ` ${toolCallId} ${attempt}`,
  tool_started: ({ toolCallId, attempt }) => ` ${toolCallId} ${attempt}`,
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: ({ toolCallId }) => ` ${toolCallId}`,
  background_ended: ({ toolCallId }) => ` ${toolCallId}`,
  tool_results_injected: null,
  compaction_started: null,
  context_compacted: null,
  agent_handed_off: null,
  guardrail_tripped: null,
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: null,
  feedback_given: null,
}

/**
 * The name of the fact that an event states, where that fact may occur only once in a run: its end, a call's result,
 * one start and one decision of a call and attempt. `undefined` for events that may occur any number of times.
 */
export function deriveOnceKey(event: RuntimeEvent): string | undefined {
  const key = (
    getOwn(onceKeys, event.type) as ((event: RuntimeEvent) => string | undefined) | null | undefined
  )?.(event)
  return key === undefined ? undefined : `${event.type}${key}`
}

/** A run's place in a conversation: in a ledger each is taken once. */
export interface SessionPlace {
  readonly sessionId: string
  readonly sessionPlace: number
}

/** The place that a run takes with its first event; `undefined` for a run without a session. */
export function readSessionPlace(events: readonly RuntimeEvent[]): SessionPlace | undefined {
  const [first] = events
  if (first?.type !== 'run_started' || first.sessionId === undefined) return undefined
  return { sessionId: first.sessionId, sessionPlace: first.sessionPlace ?? 1 }
}

/** The refusal of a run whose place in its session another run has taken. */
export function createPlaceTakenError(
  runId: RunId,
  { sessionId, sessionPlace }: SessionPlace,
): LedgerConflictError {
  return new LedgerConflictError(
    'unique',
    `Run ${runId} cannot have place ${sessionPlace} of session ${sessionId}: another run has it, and the session would ` +
      'have two histories. Nothing was written. Start the run again: it then follows the other run.',
  )
}

/**
 * Returns true if every store can hold a name as it is: databases cut texts at a NUL or refuse it, and half a surrogate pair
 * would become another text.
 */
export function isStorableName(name: string): boolean {
  return name.isWellFormed() && !name.includes('\0')
}

/**
 * Refuses, before the ledger looks at its head: events of another run or epoch, gaps in `seq`, numbers in the envelope
 * that are not whole, values that are not ids where an id belongs, and types that stores would keep as others. Throws a `ConfigurationError`
 * that names the event's place in the batch.
 */
export function requireWellFormed(
  runId: RunId,
  expected: ExpectedHead,
  events: readonly RuntimeEvent[],
): void {
  requireAppend(runId, expected, events)
  const { sessionId = '' } = readSessionPlace(events) ?? {}
  const isStorable = ({ type, toolCallId }: RuntimeEvent): boolean =>
    isStorableName(type) && (toolCallId === undefined || isStorableName(String(toolCallId)))
  if (![runId, sessionId].every(isStorableName) || !events.every(isStorable)) {
    throw new ConfigurationError(
      `An append to run ${JSON.stringify(runId)} holds an id or a type with a NUL or half a surrogate pair. Nothing was ` +
        'written, since stores would take it for another one. Use plain ids, such as UUIDs.',
    )
  }
  for (const [index, event] of events.entries()) {
    const fault = findFault(event, runId, expected.expectedSeq + index + 1, expected.epoch)
    if (fault === undefined) continue
    throw new ConfigurationError(
      `Event ${index + 1} of an append to run ${parseRunId(runId) ?? quote(runId)} ${fault}. Nothing was written, since a ledger with a ` +
        'wrong number or id in it cannot be trusted. Number events from expectedSeq + 1, sign them with the ' +
        "writer's epoch, and use ids that the runtime has made.",
    )
  }
}

const wholeNumbers = ['seq', 'epoch', 'turn', 'at', 'v'] as const

/** The fault of an event that has to have the number `next` and the epoch of its writer. */
function findFault(event: RuntimeEvent, runId: RunId, next: number, writer: number): string | undefined {
  if (event.runId !== runId) return `belongs to run ${event.runId}`
  const id = findEventIdFault(event)
  if (id) return `has ${quote(id.found)} as ${id.path}, which is not ${id.expected}`
  const { seq, epoch, at } = event
  for (const name of wholeNumbers)
    if (!Number.isSafeInteger(event[name]))
      return `has the ${name} ${String(event[name])}, which is not a whole number`
  if (!isMoment(at)) return `has the at ${Number(at)}, which is not a date of the years 0 to 9999`
  if (seq !== next) return `has the seq ${seq} where ${next} follows`
  return epoch === writer ? undefined : `has the epoch ${epoch} where its writer has ${writer}`
}

/** Returns the value given as an id, as JSON, so that no text can leave its place. */
function quote(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 80)
}

/** Refuses a writer whose idea of the head is wrong, with a `LedgerConflictError` of kind `epoch` or `seq`. */
export function requireHead(runId: RunId, head: Head, expected: ExpectedHead): void {
  if (head.epoch !== expected.epoch) {
    throw new LedgerConflictError(
      'epoch',
      `Run ${runId} is held by the writer of epoch ${head.epoch}, and this append is signed with epoch ` +
        `${expected.epoch}. Another process took the run over, so nothing was written. Stop driving it; call resume() only if that process has ended: it takes the run from its driver.`,
    )
  }
  if (head.seq !== expected.expectedSeq) {
    throw new LedgerConflictError(
      'seq',
      `Run ${runId} ends at seq ${head.seq}, and this append expects seq ${expected.expectedSeq}. Its writer has missed ` +
        `events or numbers them twice, so nothing was written. Stop driving it and load the run again with resume().`,
    )
  }
}

/** The refusal of a fact that is recorded already, though it may be recorded only once. */
export function createSecondFactError(runId: RunId, onceKey: string): LedgerConflictError {
  return new LedgerConflictError(
    'unique',
    `Run ${runId} has ${onceKey} on record already, and it may be recorded only once. Nothing was written. Load the run ` +
      `again with resume(), which continues from the recorded one.`,
  )
}

/** The refusal of a run's end while its inbox holds entries that the same append does not take. */
export function createUnreadInboxError(runId: RunId): LedgerConflictError {
  return new LedgerConflictError(
    'inbox',
    `Run ${runId} cannot end: its inbox holds commands that its writer has not read. Nothing was written, since they ` +
      'would stay unread for ever. Read the inbox, decide about them, and append again.',
  )
}

/** The refusal of a command for a run that has ended. */
export function createEndedError(runId: RunId): LedgerConflictError {
  return new LedgerConflictError(
    'ended',
    `Run ${runId} has ended and takes no command any more. Nothing was written, since no run would read it. Input ` +
      'belongs to the next run of the session.',
  )
}

export function endsRun(events: readonly RuntimeEvent[]): boolean {
  return events.some(({ type }) => type === 'run_finished')
}

/**
 * Returns true if an append takes entries out of the inbox, or makes a run due: a start that nobody drives, the end of a child
 * run. Those who follow `changes` with `inbox` get a hint then.
 */
export function hintsInbox(
  { expectedSeq }: ExpectedHead,
  { consumedInboxKeys = [], lease, wakes }: AppendOptions,
): boolean {
  const isUndriven = expectedSeq === 0 && lease === undefined
  return consumedInboxKeys.length > 0 || isUndriven || wakes !== undefined
}

/** Returns true for the error of a command that came after the end of its run. */
export function isEndedBefore(error: unknown): boolean {
  return error instanceof LedgerConflictError && error.kind === 'ended'
}

/** The answer of a put; `undefined` if it came after the end of its run. */
export async function ignoreEnded(put: Promise<boolean>): Promise<boolean | undefined> {
  try {
    return await put
  } catch (error) {
    if (isEndedBefore(error)) return undefined
    throw error
  }
}

/** Returns true for the error of an end that has to wait for entries of its inbox. */
export function isUnreadInbox(error: unknown): boolean {
  return error instanceof LedgerConflictError && error.kind === 'inbox'
}

/** The canonical text to store; a `ConfigurationError` that names `subject` for what JSON cannot carry. */
export function toStorableText(value: object, subject: string | (() => string)): string {
  try {
    return toCanonicalJson(value as Json)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'it is not JSON'
    throw new ConfigurationError(
      `${typeof subject === 'string' ? subject : subject()} cannot be stored: ${reason}. Nothing was written. Pass values that JSON can carry.`,
      { cause },
    )
  }
}

/**
 * The running digests of messages that are to be stored, up to each place; a `ConfigurationError` that names `subject`
 * for what JSON cannot carry.
 */
export function computeStorableDigests(
  messages: readonly Message[],
  subject: string | (() => string),
): readonly string[] {
  try {
    return computeHistoryDigests(messages)
  } catch (error) {
    toStorableText(messages, subject)
    throw error
  }
}

/**
 * Refuses inbox keys that stores would confuse or cannot hold: the empty one, and those with a NUL or half a
 * surrogate pair. Throws a `ConfigurationError`.
 */
export function requireInboxKey(key: string): void {
  if (key !== '' && isStorableName(key)) return
  throw new ConfigurationError(
    'An inbox key is empty or holds a NUL or half a surrogate pair. Stores would take it for another key, and a ' +
      'command could be lost. Use a key of plain text, such as a UUID.',
  )
}

/** The refusal to take a run over whose driver has a lease that lasts. */
export function createDrivenByOtherError(runId: RunId, lease: Lease): LedgerConflictError {
  return new LedgerConflictError(
    'lease',
    `Run ${runId} is driven by ${lease.holder}, whose lease lasts ${lease.leftMs} ms more unless it is renewed. To take the ` +
      'run over now would interrupt its work in flight, and may repeat it. Nothing was changed.',
    { lease },
  )
}

const maxShown = 120

/** The refusal of a cursor that names no event of the ledger that a tail was to continue after. */
export function createUnknownCursorError(cursor: TailCursor): ConfigurationError {
  if (typeof cursor !== 'string') requireOptions('ledger.tail', anyText, cursor, 'the cursor')
  const shown = cursor.length > maxShown ? `${cursor.slice(0, maxShown)}…` : cursor
  return new ConfigurationError(
    `The cursor ${JSON.stringify(shown)} does not belong to an event of this ledger, so the events after it are unknown, and continuing ` +
      'from another place would leave events out. It is from another ledger, or from events that were lost when a disk failed or ' +
      'an older copy was restored. Pass a cursor that this ledger returned, or none, and begin with the first event.',
  )
}
