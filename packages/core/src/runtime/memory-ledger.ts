import { filter, map, Subject } from 'rxjs'
import { LedgerUnavailableError, RunNotFoundError } from '../errors.ts'
import type { AppendOptions, ExpectedHead, Head, InboxEntry, Ledger, RunRecord } from '../ports/ledger.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'
import type { RunId } from '../vocabulary/ids.ts'
import {
  emptyHead,
  onceKeyOf,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  secondFact,
  storableText,
} from './append-rules.ts'

/** One run. Events and entries are kept as text, so that nobody who holds the object can change what is on record. */
interface MemoryRun {
  readonly runId: RunId
  epoch: number
  readonly events: string[]
  readonly onceKeys: Set<string>
  /** Entries not yet taken, in the order they were put. */
  readonly inbox: Map<string, string>
  /** Every key ever put. */
  readonly inboxKeys: Set<string>
}

/**
 * A ledger that lives in this process and ends with it: for tests, and for runs that nobody resumes. It keeps every
 * promise of the port but durability, so a `barrier` is no more than a `lazy` append.
 */
export function memoryLedger(): Ledger {
  const runs = new Map<RunId, MemoryRun>()
  const changed$ = new Subject<RunId>()
  let closed = false

  function requireOpen(): void {
    if (!closed) return
    throw new LedgerUnavailableError(
      'This in-memory ledger is closed, and what it held is gone. Make a new one with memoryLedger().',
    )
  }
  function requireRun(runId: RunId): MemoryRun {
    requireOpen()
    const run = runs.get(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    return run
  }

  return {
    async append(runId, expected, events, options) {
      requireOpen()
      requireWellFormed(runId, expected, events)
      const run = runs.get(runId) ?? newRun(runId)
      const texts = events.map((event) => eventText(event))
      if (isAcknowledgementLost(run, expected, texts)) return headAfter(expected, events)
      requireHead(runId, headOf(run), expected)
      const onceKeys = requireUnstated(run, events)
      commit(run, texts, onceKeys, options)
      if (run.events.length > 0) runs.set(runId, run)
      changed$.next(runId)
      return headOf(run)
    },
    async acquire(runId) {
      const run = requireRun(runId)
      run.epoch += 1
      changed$.next(runId)
      return headOf(run)
    },
    async head(runId) {
      requireOpen()
      const run = runs.get(runId)
      return run && headOf(run)
    },
    async *read(runId, range) {
      requireOpen()
      const events = runs.get(runId)?.events ?? []
      const last = Math.min(range?.toSeq ?? events.length, events.length)
      for (let seq = Math.max(range?.fromSeq ?? 1, 1); seq <= last; seq++) {
        yield JSON.parse(events[seq - 1] as string) as RuntimeEvent
      }
    },
    async *runs() {
      requireOpen()
      const records = [...runs.values()].map(({ runId }) => runId).reverse()
      for (const runId of records) yield recordOf(requireRun(runId))
    },
    async put(runId, entry) {
      const run = requireRun(runId)
      const { key, command, at } = entry
      requireInboxKey(key)
      const text = storableText({ key, command, at }, `The inbox entry ${key} of run ${runId}`)
      if (run.inboxKeys.has(key)) return false
      run.inboxKeys.add(key)
      run.inbox.set(key, text)
      changed$.next(runId)
      return true
    },
    async inbox(runId) {
      requireOpen()
      return [...(runs.get(runId)?.inbox.values() ?? [])].map((text) => JSON.parse(text) as InboxEntry)
    },
    changes(runId) {
      return changed$.pipe(
        filter((id) => id === runId),
        map(() => undefined),
      )
    },
    async close() {
      closed = true
      runs.clear()
      changed$.complete()
    },
  }
}

function newRun(runId: RunId): MemoryRun {
  return {
    runId,
    epoch: emptyHead.epoch,
    events: [],
    onceKeys: new Set(),
    inbox: new Map(),
    inboxKeys: new Set(),
  }
}

function eventText(event: RuntimeEvent): string {
  return storableText(event, `Event ${event.seq} (${event.type}) of run ${event.runId}`)
}

function headOf(run: MemoryRun): Head {
  return { seq: run.events.length, epoch: run.epoch }
}

function recordOf(run: MemoryRun): RunRecord {
  return { runId: run.runId, head: headOf(run) }
}

/** Never the head of now: a writer that was relieved in between must not learn the epoch of its successor. */
function headAfter(expected: ExpectedHead, events: readonly RuntimeEvent[]): Head {
  return { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
}

function isAcknowledgementLost(run: MemoryRun, expected: ExpectedHead, texts: readonly string[]): boolean {
  if (texts.length === 0) return false
  return texts.every((text, index) => run.events[expected.expectedSeq + index] === text)
}

function requireUnstated(run: MemoryRun, events: readonly RuntimeEvent[]): readonly string[] {
  const stated = new Set<string>()
  for (const event of events) {
    const key = onceKeyOf(event)
    if (key === undefined) continue
    if (run.onceKeys.has(key) || stated.has(key)) throw secondFact(run.runId, key)
    stated.add(key)
  }
  return [...stated]
}

function commit(
  run: MemoryRun,
  texts: readonly string[],
  onceKeys: readonly string[],
  options: AppendOptions,
): void {
  for (const text of texts) run.events.push(text)
  for (const key of onceKeys) run.onceKeys.add(key)
  for (const key of options.takes ?? []) run.inbox.delete(key)
}
