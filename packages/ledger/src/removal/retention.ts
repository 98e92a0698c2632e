import { ConfigurationError, type Ledger } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { hexOf } from '../record/chain.ts'
import { segmentsOf } from '../content/event/decoded-events.ts'
import { contentTypes, deltaTypes } from './content-types.ts'
import { requireRemovable } from './redact.ts'
import type { StoredRow, StoredSegment } from '../record/stored-row.ts'
import type { EndedRun, Batch, RemovableQuery, RemovableStore } from './removable-store.ts'
import type { Removal } from '../record/removal.ts'
import { eventsIn, removalsOf, takeAway, type Taking } from './removals-of.ts'

/** How long content is kept, by class, in milliseconds from its recording. A class that is not named stays for ever. */
export interface RetentionAges {
  /**
   * Pieces of texts and of tool inputs as they were streamed, and progress of tools: later events hold their content
   * whole.
   */
  readonly deltasMs?: number | undefined
  /** Messages, inputs and results. The facts of each event stay: who, which, when, how much, how it ended. */
  readonly contentMs?: number | undefined
  /** Whole runs, from their end. Of each run only its id, its time and its last hash stay. */
  readonly factsMs?: number | undefined
}

/** How rules of retention are applied. */
export interface RetentionOptions {
  /** Milliseconds since 1970 UTC. Default: now. */
  readonly now?: number | undefined
  /** Recorded with each removal. Default: `retention`. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** Counts, and removes nothing. */
  readonly dryRun?: boolean | undefined
  /** Called after each step with what has been removed so far. */
  readonly onProgress?: ((soFar: RetentionReport) => void) | undefined
}

/** What rules of retention removed. */
export interface RetentionReport {
  /** Events that lost their payload, by class. */
  readonly deltas: number
  readonly content: number
  /** Runs that were dropped, and how many events they had. */
  readonly runs: number
  readonly events: number
}

const eventsAtOnce = 512
const runsAtOnce = 1024

/**
 * Removes content that is older than the rules allow, from runs that have ended; a run that is under way, or waits
 * for a person or a command, keeps the content that it needs to continue. It works in small transactions: it can be
 * stopped at any moment, and run again.
 *
 * Rejects with `ConfigurationError` for invalid ages, or a ledger that cannot remove content.
 */
export async function applyRetention(
  ledger: Ledger,
  ages: RetentionAges,
  options: RetentionOptions = {},
): Promise<RetentionReport> {
  requireLedger('applyRetention', ledger)
  requireOptions('applyRetention', retentionAges, ages)
  requireOptions('applyRetention', retentionOptions, options)
  requireAges(ages)
  const store = requireRemovable(ledger)
  const { now = Date.now(), by = 'retention', reason, dryRun = false, onProgress } = options
  const report = { deltas: 0, content: 0, runs: 0, events: 0 }
  const taking = { at: now, by, ...(reason !== undefined && { reason }) }
  const expiring = { kind: 'expired', ...taking } as const
  const drop = async (removal: Removal): Promise<number> =>
    dryRun ? eventsIn([removal]) : await store.remove([removal])
  const expire = async (due: readonly StoredSegment[]): Promise<number> =>
    dryRun ? eventsIn(removalsOf(due, expiring)) : await takeAway(store, due, expiring)
  const reportProgress = (): void => onProgress?.({ ...report })
  // Whole runs first: what goes with them need not be masked before.
  if (ages.factsMs !== undefined) {
    for await (const removal of dropped(store, now - ages.factsMs, taking)) {
      report.events += await drop(removal)
      report.runs++
      reportProgress()
    }
  }
  for (const [name, types, ageMs] of [
    ['deltas', deltaTypes, ages.deltasMs],
    ['content', contentTypes, ages.contentMs],
  ] as const) {
    if (ageMs === undefined) continue
    for await (const due of expired(store, { types, before: now - ageMs })) {
      report[name] += await expire(due)
      reportProgress()
    }
  }
  return report
}

const { anyFunction, anyText, fields, maybe, numberFrom, trueOrFalse, valueThat } = option

const age = valueThat('milliseconds from 0', (value) => Number.isFinite(value) && (value as number) >= 0)
const retentionAges = fields<RetentionAges>({
  deltasMs: maybe(age),
  contentMs: maybe(age),
  factsMs: maybe(age),
})
const retentionOptions = fields<RetentionOptions>({
  now: maybe(numberFrom(0)),
  by: maybe(anyText),
  reason: maybe(anyText),
  dryRun: maybe(trueOrFalse),
  onProgress: maybe(anyFunction),
})

function requireAges({ deltasMs, contentMs, factsMs }: RetentionAges): void {
  if ((deltasMs ?? contentMs ?? factsMs) !== undefined) return
  throw new ConfigurationError(
    'Retention needs an age in milliseconds, from 0, for at least one class: deltasMs, contentMs, factsMs. Nothing was removed.',
  )
}

type Taken = Omit<Taking, 'kind'>

async function* dropped(store: RemovableStore, before: number, taken: Taken): AsyncGenerator<Removal> {
  for (let afterPos: number | undefined = 0; afterPos !== undefined;) {
    const batch: Batch<EndedRun> = await store.endedRuns({ before, afterPos, limit: runsAtOnce })
    afterPos = batch.next
    for (const { runId, headSeq, headHash } of batch.items) {
      yield { runId, fromSeq: 1, toSeq: headSeq, kind: 'dropped', headHash: hexOf(headHash), ...taken }
    }
  }
}

async function* expired(
  store: RemovableStore,
  asked: Pick<RemovableQuery, 'types' | 'before'>,
): AsyncGenerator<readonly StoredSegment[]> {
  for (let afterPos: number | undefined = 0; afterPos !== undefined;) {
    const batch: Batch<StoredRow> = await store.payloads({ ...asked, afterPos, limit: eventsAtOnce })
    afterPos = batch.next
    // Removals of one run follow each other, whatever was written between its events.
    const items = [...Map.groupBy(batch.items, ({ runId }) => runId).values()].flat()
    const due = items
      .flatMap(segmentsOf)
      .filter(
        ({ type, at, payload }) => payload !== undefined && at < asked.before && asked.types.includes(type),
      )
    if (due.length > 0) yield due
  }
}
