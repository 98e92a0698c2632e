import {
  type Ledger,
  LedgerConflictError,
  type RunId,
  type RuntimeEvent,
  TallystickError,
} from '@tallystick/core'
import { caughtUp, followAllChanges, describeDifference, formatLegibly } from '@tallystick/core/internal'
import type {
  AppendOptions,
  Fact,
  FactOf,
  Head,
  InboxEntry,
  TailCursor,
  TailedEvent,
} from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleMessage, sampleRunId, stampFacts } from '../samples/values.ts'

/** Fails the case unless two values are the same JSON. `what` names the value in the message. */
export function requireEqual(actual: unknown, expected: unknown, what: string): void {
  const difference = describeDifference(actual, expected)
  if (difference)
    throw createBrokenError(`${what} should be ${difference.expected}, but is ${difference.found}`)
}

/** Fails the case unless the condition holds. */
export function require(condition: boolean, what: string): asserts condition {
  if (!condition) throw createBrokenError(what)
}

/** Fails the case unless the promise rejects with a `TallystickError` of that code; answers the error. */
export async function requireRefusal(promise: Promise<unknown>, code: string): Promise<TallystickError> {
  let outcome: unknown
  try {
    outcome = await promise
  } catch (error) {
    if (error instanceof TallystickError && error.code === code) return error
    throw createBrokenError(
      `the refusal should be a TallystickError of code ${code}, but is ${formatLegibly(error)}`,
      error,
    )
  }
  throw createBrokenError(`the ledger should refuse with code ${code}, but answers ${formatLegibly(outcome)}`)
}

/** Fails the case unless the append is refused with a `LedgerConflictError` of that kind. */
export async function requireConflict(
  append: Promise<unknown>,
  kind: LedgerConflictError['kind'],
): Promise<void> {
  const error = await requireRefusal(append, 'ledger_conflict')
  require(error instanceof LedgerConflictError, 'a conflict is not a LedgerConflictError')
  requireEqual(error.kind, kind, 'the kind of the conflict')
}

function createBrokenError(what: string, cause?: unknown): TallystickError {
  return new TallystickError('contract', `The ledger breaks its contract: ${what}.`, { cause })
}

/** The run that most cases are about, and another beside it. */
export const run: RunId = sampleRunId(1)
export const otherRun: RunId = sampleRunId(2)

/** How most cases append. */
export const lazy: AppendOptions = { durability: 'lazy' }
export const barrier: AppendOptions = { durability: 'barrier' }

/** A fact that may be recorded any number of times. */
export function saying(text: string): FactOf<'assistant_text_delta'> {
  return { type: 'assistant_text_delta', turn: 1, attempt: 1, part: 0, text }
}

export function appendFirst(
  ledger: Ledger,
  events: readonly RuntimeEvent[],
  options: AppendOptions = barrier,
): Promise<Head> {
  const [{ runId }] = events as readonly [RuntimeEvent]
  return ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, options)
}

/** A run with `run_started` and then the facts given, in one append. */
export function startRun(ledger: Ledger, runId: RunId = run, facts: readonly Fact[] = []): Promise<Head> {
  return appendFirst(ledger, stampFacts(runId, [sampleFacts(runId).run_started, ...facts]))
}

export function startInSession(
  ledger: Ledger,
  runId: RunId,
  sessionId: string,
  sessionPlace: number,
): Promise<Head> {
  const started = { ...sampleFacts(runId).run_started, sessionId, sessionPlace }
  return appendFirst(ledger, stampFacts(runId, [started]))
}

/** Appends after a head that the case knows. */
export function appendAt(
  ledger: Ledger,
  head: Head,
  facts: readonly Fact[],
  { runId = run, ...options }: Partial<AppendOptions> & { readonly runId?: RunId } = {},
): Promise<Head> {
  const events = stampFacts(runId, facts, { afterSeq: head.seq, epoch: head.epoch })
  return ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, events, { ...lazy, ...options })
}

export async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A command that waits in an inbox. */
export function steering(key: string, text: string = key): InboxEntry {
  return {
    key,
    command: { type: 'steer', message: sampleMessage(text), receipt: `receipt of ${key}` },
    at: 1_760_000_000_500,
  }
}

/** Fails the case unless the run holds exactly these events, and its head is at the last of them. */
export async function requireRecord(
  ledger: Ledger,
  expected: readonly RuntimeEvent[],
  { runId = run, epoch = 1 }: { readonly runId?: RunId; readonly epoch?: number } = {},
): Promise<void> {
  requireEqual(await collect(ledger.read(runId)), expected, `what run ${runId} holds`)
  requireEqual(await ledger.head(runId), { seq: expected.length, epoch }, `the head of run ${runId}`)
}

/** Opens a ledger over the store of this case. The store is empty at the first call. */
export type OpenLedger = () => Promise<Ledger>

/** One promise of the ledger port, and how to find out whether a store keeps it. */
export interface LedgerContractCase {
  /** The promise of the store, as a sentence. */
  readonly promise: string
  /**
   * The property of a store without which the promise means nothing. If yours lacks it, skip the case with that reason.
   * - `durable`: what was closed can be opened again
   * - `shared`: two ledgers may be open over one store at the same time
   */
  readonly needs?: 'durable' | 'shared'
  /** Rejects with an error that says what was expected and what was found. Opened ledgers may be left open. */
  readonly run: (open: OpenLedger) => Promise<void>
}

/** A case that opens the store once. */
export function checkLedger(promise: string, check: (ledger: Ledger) => Promise<void>): LedgerContractCase {
  return { promise, run: async (open) => check(await open()) }
}

/** A case about a run that has begun. */
export function checkRun(
  promise: string,
  check: (ledger: Ledger, head: Head) => Promise<void>,
): LedgerContractCase {
  return checkLedger(promise, async (ledger) => check(ledger, await startRun(ledger)))
}

/** A case that closes the store and opens it again. */
export function checkDurable(
  promise: string,
  check: (ledger: Ledger, open: OpenLedger) => Promise<void>,
): LedgerContractCase {
  return { promise, needs: 'durable', run: async (open) => check(await open(), open) }
}

/** A case that opens the store twice at once, as two processes do. */
export function checkShared(
  promise: string,
  check: (one: Ledger, other: Ledger) => Promise<void>,
): LedgerContractCase {
  return { promise, needs: 'shared', run: async (open) => check(await open(), await open()) }
}

/**
 * Reads tails from a cursor, one after the other, until they have yielded so many events: other work in the same database
 * may delay acknowledged events. Reads again at each hint, so if the events never come it hangs until the runner's time
 * limit.
 */
export async function tailUntil(
  ledger: Ledger,
  count: number,
  after?: TailCursor,
): Promise<readonly TailedEvent[]> {
  const seen: TailedEvent[] = []
  for await (const tailed of followAllChanges(ledger, after)) {
    if (tailed !== caughtUp) seen.push(tailed)
    else if (seen.length >= count) break
  }
  return seen
}
