import { isAfterEnd } from '@tallystick/core/vocabulary'
import { type Ledger, LedgerDamagedError, type RunId, RunNotFoundError } from '@tallystick/core'
import { requireLedger } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import { readImport } from '../store/records.ts'
import { BadRunIdsError, createFault, type Fault, isRunId, quoteId } from '../format/event-row.ts'
import { type MissingContent, MissingContents } from '../store/redact.ts'
import { type Internals, getInternals } from '../store/store.ts'
import { EventAudit, FamilyAudit } from './event-audit.ts'
import { beginProjectionAudit, findStrayFault } from './projection-audit.ts'
import { auditRows, type Progress } from './row-audit.ts'
import { auditStore, findOrphans } from './store-audit.ts'

/**
 * Verifies one run, event by event, with only one state in memory. On any ledger it checks the laws; on a ledger of
 * this package also the chain of hashes, the commitments of the payloads and the run's row. Returns faults in the
 * verdict, and never throws them. Rejects with `RunNotFoundError` if the ledger has no such run, and with
 * `LedgerUnavailableError` if it cannot be read at all.
 */
export async function verifyRun(ledger: Ledger, runId: RunId): Promise<RunVerdict> {
  requireLedger('verifyRun', ledger)
  requireTextId('verifyRun', runId)
  const source = getInternals(ledger)
  source?.rows.forget()
  return await auditRun(ledger, source, runId)
}

async function auditRun(ledger: Ledger, source: Internals | undefined, runId: RunId): Promise<RunVerdict> {
  const progress: Progress = {
    events: 0,
    hasEnded: false,
    missing: new MissingContents(),
    family: new FamilyAudit(),
  }
  const projections = await beginProjectionAudit(ledger, runId)
  try {
    await (source ? auditRows(source, runId, progress, projections) : auditEvents(ledger, runId, progress))
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    progress.broken = { seq: progress.events + 1, ...createFault('pages', 'readable', error.message) }
  }
  const broken =
    progress.broken ??
    (await progress.family.fault(ledger)) ??
    (await findInboxFault(ledger, runId, progress))
  const { events } = progress
  const missing = progress.missing.all
  const imported = source && isRunId(runId) ? await readImport(source.store.database, runId) : undefined
  return {
    scope: 'run',
    runId,
    ok: broken === undefined,
    events,
    ...(broken !== undefined && { broken: { runId, ...broken } }),
    ...(broken === undefined && projections?.fault && { differs: projections.fault }),
    ...(missing.length > 0 && { missing }),
    ...(imported && { imported }),
  }
}

/** Every command that waits can be read; and by law 15 none waits for a run that has ended. */
async function findInboxFault(
  ledger: Ledger,
  runId: RunId,
  { hasEnded, events }: Progress,
): Promise<Progress['broken']> {
  try {
    const unread = await ledger.inbox(runId)
    if (!hasEnded || unread.length === 0) return undefined
    const keys = unread.slice(0, 3).map(({ key }) => JSON.stringify(key))
    const found = `${unread.length} unread: ${keys.join(', ')}${unread.length > 3 ? ', …' : ''}`
    return { seq: events, ...createFault('law 15', 'an inbox that was read before the run ended', found) }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    return { seq: events, ...createFault('inbox', 'readable', error.message) }
  }
}

/** Verifies every run, the newest first, and last the store around them, whose verdict comes last. */
export async function* verifyLedger(ledger: Ledger): AsyncGenerator<RunVerdict | StoreVerdict> {
  requireLedger('verifyLedger', ledger)
  const source = getInternals(ledger)
  source?.rows.forget()
  const sum = { runs: 0, brokenRuns: 0, events: 0, droppedRuns: 0 }
  let differingRuns = 0
  let broken: Fault | undefined
  try {
    for await (const runId of listEveryRun(ledger, source)) {
      const verdict = await verifyListed(ledger, source, runId)
      sum.runs += 1
      sum.events += verdict.events
      if (!verdict.ok) sum.brokenRuns += 1
      if (verdict.differs) differingRuns += 1
      yield verdict
    }
    if (source) {
      const audited = await auditStore(source.store)
      sum.droppedRuns = audited.droppedRuns
      broken = audited.broken
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    broken = createFault('pages', 'readable', error.message)
  }
  const ok = sum.brokenRuns === 0 && broken === undefined
  // For a damaged store, derived data does not matter.
  const differs = ok ? await findStrayFault(ledger) : undefined
  yield {
    ...{ scope: 'store', ok, ...sum },
    ...(differingRuns > 0 && { differingRuns }),
    ...(differs && { differs }),
    ...(broken !== undefined && { broken }),
  }
}

/** A run that is listed and cannot be found under its id is damage, not a mistake of the caller. */
async function verifyListed(
  ledger: Ledger,
  source: Internals | undefined,
  runId: string,
): Promise<RunVerdict> {
  if (!isRunId(runId)) {
    // The run has no valid id: the verdict reports the found text.
    const broken = { runId: runId as RunId, seq: 1, ...createFault('run_id', 'a run id', quoteId(runId)) }
    return { scope: 'run', runId: runId as RunId, ok: false, events: 0, broken }
  }
  try {
    return await auditRun(ledger, source, runId)
  } catch (error) {
    if (!(error instanceof RunNotFoundError)) throw error
    const broken = { runId, seq: 1, ...createFault('run', 'the run that is listed', 'none') }
    return { scope: 'run', runId, ok: false, events: 0, broken }
  }
}

/** Yields every run id, including those of damaged rows and of events without a row. */
async function* listEveryRun(ledger: Ledger, source: Internals | undefined): AsyncGenerator<string> {
  try {
    for await (const { runId } of ledger.runs()) yield runId
  } catch (error) {
    if (!(error instanceof BadRunIdsError)) throw error
    yield* error.found
  }
  if (source) yield* await findOrphans(source.store.database)
}

/** Checks a ledger of another package, by its port. */
async function auditEvents(ledger: Ledger, runId: RunId, progress: Progress): Promise<void> {
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  const laws = new EventAudit()
  let epoch = 0
  // No further than the head that was read before, since the run's writer may be at work.
  for await (const event of ledger.read(runId, { toSeq: head.seq })) {
    const due = progress.events + 1
    const broken =
      event.seq === due && event.runId === runId
        ? laws.check(event)
        : createFault('seq', `${due} of run ${runId}`, `${event.seq} of run ${event.runId}`)
    if (broken) return void (progress.broken = { seq: due, ...broken })
    progress.events = due
    progress.family.handle(event)
    progress.hasEnded = isAfterEnd(event)
    epoch = event.epoch
  }
  if (head.seq !== progress.events) {
    progress.broken = { seq: progress.events, ...createFault('head', head.seq, progress.events) }
  } else if (head.epoch < epoch) {
    progress.broken = {
      seq: progress.events,
      ...createFault('epoch of the head', `${epoch} or more`, head.epoch),
    }
  }
}

/** The first place where a run is not what was written, or breaks a law. */
export interface BrokenPlace extends Fault {
  readonly runId: RunId
  /** The number of the event, or where it should be; that of the last event if the run's row is at fault. */
  readonly seq: number
}

export interface RunVerdict {
  readonly scope: 'run'
  readonly runId: RunId
  readonly ok: boolean
  /** Events that were found sound, from the first on. */
  readonly events: number
  readonly broken?: BrokenPlace
  /**
   * A snapshot or a projection of the run that differs from its events. The recorded events are sound, so the run is
   * `ok`; rebuilding corrects it.
   */
  readonly differs?: Fault
  /** Content that was removed, on record, and content that is encrypted; absent if all of it was read. */
  readonly missing?: readonly MissingContent[]
  /** Set if an import brought the run, or what `reason` says of it: the chain is that of this ledger, not of the one that recorded it. */
  readonly imported?: { readonly at: number; readonly by: string; readonly reason?: string }
}

/** The verdict on the store around its runs, and on all of them together. */
export interface StoreVerdict {
  readonly scope: 'store'
  /** The store and every run are sound. */
  readonly ok: boolean
  readonly runs: number
  readonly brokenRuns: number
  readonly events: number
  /** Runs that were dropped, on record. */
  readonly droppedRuns: number
  /** The number of runs whose snapshots or projections differ from their events. */
  readonly differingRuns?: number
  /** Summaries of runs that are not there. */
  readonly differs?: Fault
  /** A fault of the store itself: of its pages, its numbering, its triggers. */
  readonly broken?: Fault
}
