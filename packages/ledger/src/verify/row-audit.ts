import { LedgerDamagedError, RunNotFoundError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { type SessionPlace } from '@tallystick/core/store-kit'
import type { AuditSource, StoredRun } from '../record/audit-source.ts'
import { hexOf, rowDigest } from '../record/chain.ts'
import { type AuditedPlace, type ProjectionAudit } from './projection-audit.ts'
import { CoveringRemovals } from './covering-removals.ts'
import { EventAudit } from './event-audit.ts'
import { contentFault, fault, genesis, linkFault, type Fault, type Link } from '../record/link-check.ts'
import { decodedSegments } from '../content/event/decoded-events.ts'
import { factNumberOf } from '../record/segments/fact-number.ts'
import type { StoredRow } from '../record/stored-row.ts'
import { upcast } from '../versions/upcast.ts'
import type { Progress } from './progress.ts'
import { usesFault } from './use-audit.ts'

/** The chain from its first link to where it ends now, and the laws over what its bodies say. */
export async function auditRows(
  source: AuditSource,
  runId: RunId,
  progress: Progress,
  projections: ProjectionAudit | undefined,
): Promise<void> {
  const run = await source.run(runId)
  if (run === undefined) throw new RunNotFoundError(runId)
  for (const number of run.facts) progress.facts.add(number)
  const removals = await CoveringRemovals.of(source.removals(runId))
  const audit: Audit = {
    laws: new EventAudit({ accumulates: projections?.isAny === true }),
    progress,
    projections,
    removals,
    due: [],
    last: genesis,
    firstPos: 0,
    session: undefined,
  }
  for await (const rows of source.events(runId, run.lastSeq)) {
    const broken =
      rowsFault(rows, audit) ?? (await usesFault(source, rows)) ?? (await projectionsFault(audit))
    if (broken) return void (progress.broken = broken)
  }
  const { last, firstPos, session } = audit
  await projections?.end(last.seq)
  const broken = sessionFault(run, session) ?? rowFault(run, last, firstPos)
  const found = broken ? { seq: Math.max(progress.events, 1), ...broken } : factFault(progress)
  if (found) progress.broken = found
}

/** What an audit goes by from event to event. */
interface Audit {
  readonly laws: EventAudit
  readonly progress: Progress
  readonly projections: ProjectionAudit | undefined
  /** Read before the events, so that all that they cover is gone from these. */
  readonly removals: CoveringRemovals
  /** Places after which something was projected, and what the audit knew there: to be compared. */
  readonly due: AuditedPlace[]
  /** The last sound row. */
  last: Link
  /** Where the first event is. */
  firstPos: number
  /** What the first event says. */
  session: SessionPlace | undefined
}

/** The first fault of some rows, in order. */
function rowsFault(rows: readonly StoredRow[], audit: Audit): Progress['broken'] {
  const { laws, progress } = audit
  for (const stored of rows) {
    const broken = linkFault(audit.last, stored) ?? eventsFault(stored, audit)
    if (broken) return { seq: progress.events + 1, ...broken }
    audit.last = stored
    if (stored.seq > 1) continue
    audit.firstPos = stored.pos
    audit.session = laws.session
  }
  return undefined
}

/** The laws over the events of a row. */
function eventsFault(
  stored: StoredRow,
  { laws, progress, projections, removals, due }: Audit,
): Fault | undefined {
  try {
    for (const events of decodedSegments(stored)) {
      const covered = removals.faultOf(events)
      if (covered) return covered
      if (areWholeDeltas(stored, events, projections) && laws.takeDeltas(events, true)) {
        progress.events += events.length
        continue
      }
      for (let index = 0; index < events.length; index++) {
        const event = upcast(events[index] as RuntimeEvent)
        const isBetween = index > 0 && index < events.length - 1
        const found = contentFault(stored, event) ?? laws.faultOf(event, isBetween)
        if (found) return found
        take(progress, event)
        if (projections?.concerns(event.seq, event.seq))
          due.push({ seq: event.seq, hash: stored.hash, ...laws.known })
      }
    }
    return undefined
  } catch (error) {
    return unreadable(error)
  }
}

/** Compares what was projected up to here. A state that cannot be projected, as of forged events, is a fault as well. */
async function projectionsFault({ due, projections }: Audit): Promise<Progress['broken']> {
  for (const place of due.splice(0)) {
    try {
      await projections?.check(place)
    } catch (error) {
      return { seq: place.seq + 1, ...unreadable(error) }
    }
  }
  return undefined
}

function unreadable(error: unknown): Fault {
  const found = error instanceof LedgerDamagedError ? error.message : 'bytes that are not JSON'
  return fault('body', 'canonical JSON', found)
}

/** Notes a sound event, and takes its fact off those of the store that no event has stated yet. */
function take(progress: Progress, event: RuntimeEvent): void {
  progress.events = event.seq
  progress.hasEnded = event.type === 'run_finished'
  progress.missing.handle(event)
  progress.family.handle(event)
  const number = factNumberOf(event)
  if (number === undefined || progress.facts.delete(number)) return
  progress.unheld ??= { seq: event.seq, ...fault('fact', number, 'none') }
}

function factFault({ unheld, facts, events }: Progress): Progress['broken'] {
  const [left] = facts
  if (left === undefined) return unheld
  return unheld ?? { seq: Math.max(events, 1), ...fault('fact', 'one that an event states', left) }
}

/** Whether events are several deltas of a reply whose content is there, and nothing was projected after one of them. */
function areWholeDeltas(
  stored: StoredRow,
  events: readonly RuntimeEvent[],
  projections: ProjectionAudit | undefined,
): boolean {
  const [first, last] = [events[0], events.at(-1)]
  if (first === undefined || last === undefined || first === last || first.removed !== undefined) return false
  return contentFault(stored, first) === undefined && !projections?.concerns(first.seq, last.seq)
}

/** The run's row says which session the run belongs to, as its first event does. */
function sessionFault({ row }: StoredRun, session: SessionPlace | undefined): Fault | undefined {
  const placeText = (place: SessionPlace | undefined): string =>
    place ? `${place.sessionPlace} of ${place.sessionId}` : 'none'
  if (row === undefined || placeText(row.session) === placeText(session)) return undefined
  return fault('session', placeText(session), placeText(row.session))
}

/** The run's row says where the chain ends, under which epoch, and since when. */
function rowFault({ row, events }: StoredRun, last: Link, firstPos: number): Fault | undefined {
  if (row === undefined) return fault('run', 'a row', 'none')
  if (row.headSeq !== last.seq) return fault('head_seq', last.seq, row.headSeq)
  if (Buffer.compare(row.headHash, last.hash) !== 0) {
    return fault('head_hash', hexOf(last.hash), hexOf(row.headHash))
  }
  if (row.epoch < last.epoch) return fault('epoch', `${last.epoch} or more`, row.epoch)
  if (row.pos !== firstPos) return fault('pos', firstPos, row.pos)
  if (events !== last.seq) return fault('event rows', last.seq, events)
  const seal = rowDigest(row)
  return Buffer.compare(seal, row.seal) === 0 ? undefined : fault('seal', hexOf(seal), hexOf(row.seal))
}
