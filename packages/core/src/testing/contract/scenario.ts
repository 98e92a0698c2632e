import type { AppendOptions, Head, InboxEntry, Ledger } from '../../ledger/ledger.ts'
import type { Fact, FactOf, RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleMessage, sampleRunId, stamped } from '../samples/sample-ids.ts'
import { requireEqual } from './requirement.ts'

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

/** A run with `run_started` and then the facts given, in one append. */
export async function startRun(
  ledger: Ledger,
  runId: RunId = run,
  facts: readonly Fact[] = [],
): Promise<Head> {
  const events = stamped(runId, [everyFact(runId).run_started, ...facts])
  return ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, barrier)
}

/** Appends after a head that the case knows. */
export function appendAt(
  ledger: Ledger,
  head: Head,
  facts: readonly Fact[],
  { runId = run, ...options }: Partial<AppendOptions> & { readonly runId?: RunId } = {},
): Promise<Head> {
  const events = stamped(runId, facts, { afterSeq: head.seq, epoch: head.epoch })
  return ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, events, { ...lazy, ...options })
}

/** All that an iterable yields. */
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
