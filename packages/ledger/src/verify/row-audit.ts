import { isAfterEnd } from '@tallystick/core/vocabulary'
import { LedgerDamagedError, type RunId, RunNotFoundError } from '@tallystick/core'
import { findHistoryName, upcast } from '../format/body.ts'
import { digestText, sealRun } from '../format/chain.ts'
import {
  decodeRow,
  createFault,
  type Fault,
  findLinkFault,
  genesis,
  type Link,
  type ReadableRow,
} from '../format/event-row.ts'
import type { MissingContents } from '../store/redact.ts'
import type { Internals } from '../store/store.ts'
import { EventAudit, type FamilyAudit } from './event-audit.ts'
import type { AuditedPlace, ProjectionAudit } from './projection-audit.ts'
import { type AuditedRow, readAuditedRows, readStoredRun, type StoredRun } from './store-audit.ts'

/** The state of an audit between events. */
interface Audit {
  readonly laws: EventAudit
  readonly progress: Progress
  readonly projections: ProjectionAudit | undefined
  /** Places after which something was projected, with the run there: to be compared. */
  readonly due: AuditedPlace[]
  /** The last sound row. */
  last: Link
  /** The row of the run, as its events say it has to be. */
  firstPos: number
  endedAt: number | null
  history: string | null
}

/** The chain from its first link to where it ends now, and the laws over what its bodies say. */
export async function auditRows(
  { store, rows: reader }: Internals,
  runId: RunId,
  progress: Progress,
  projections: ProjectionAudit | undefined,
): Promise<void> {
  const run = await readStoredRun(store.database, runId)
  if (run === undefined) throw new RunNotFoundError(runId)
  const audit: Audit = {
    laws: new EventAudit({ accumulates: projections?.isAny === true }),
    ...{ progress, projections, due: [], last: genesis, firstPos: 0, endedAt: null, history: null },
  }
  // A row that is twice there is found as out of order.
  while (audit.last.seq < run.lastSeq) {
    const rows = await readAuditedRows(store.database, {
      ...{ runId, fromSeq: audit.last.seq + 1, toSeq: run.lastSeq },
    })
    const readable = await reader.readable(rows)
    const broken = findRowsFault(readable, audit) ?? (await findProjectionsFault(audit))
    if (broken) return void (progress.broken = broken)
    if (rows.length === 0) break
  }
  projections?.end(audit.last.seq)
  const broken = findRunFault(run, audit)
  if (broken) progress.broken = { seq: Math.max(progress.events, 1), ...broken }
}

/** The first fault of some rows, in order. */
function findRowsFault(rows: readonly (AuditedRow & ReadableRow)[], audit: Audit): Progress['broken'] {
  const { progress } = audit
  for (const row of rows) {
    const broken = findLinkFault(audit.last, row) ?? findRemovalFault(row) ?? findEventFault(row, audit)
    if (broken) return { seq: progress.events + 1, ...broken }
    audit.last = row
  }
  return undefined
}

/** The rest of a removed event is as its removal says; other events have no removal. */
function findRemovalFault({ commitment, removal, body }: AuditedRow): Fault | undefined {
  if (commitment === null) {
    return removal === null ? undefined : createFault('body', 'none, since a removal is on record', 'a body')
  }
  if (removal === null) return createFault('removal', 'a removal on record', 'none')
  const found = digestText(body)
  return found === removal ? undefined : createFault('body', `what was left, ${removal}`, found)
}

/** The laws over the event of a row. */
function findEventFault(row: AuditedRow & ReadableRow, audit: Audit): Fault | undefined {
  const { laws, progress, projections, due } = audit
  try {
    const event = upcast(decodeRow(row))
    const found = laws.check(event)
    if (found) return found
    progress.events = event.seq
    progress.hasEnded = isAfterEnd(event)
    progress.missing.handle(event)
    progress.family.handle(event)
    if (row.seq === 1) audit.firstPos = row.pos
    if (event.type === 'run_finished') audit.endedAt = event.at
    audit.history ??= findHistoryName(row) ?? null
    if (projections?.concerns(event.seq)) due.push({ seq: event.seq, hash: row.hash, ...laws.known })
    return undefined
  } catch (error) {
    return toUnreadableFault(error)
  }
}

/** Compares the projections up to here. A state that cannot be projected, as from forged events, is also a fault. */
async function findProjectionsFault({ due, projections }: Audit): Promise<Progress['broken']> {
  for (const place of due.splice(0)) {
    try {
      await projections?.check(place)
    } catch (error) {
      return { seq: place.seq + 1, ...toUnreadableFault(error) }
    }
  }
  return undefined
}

function toUnreadableFault(error: unknown): Fault {
  const found = error instanceof LedgerDamagedError ? error.message : 'text that is not JSON'
  return createFault('body', 'JSON', found)
}

/** The row of the run says where the chain ends, since when, under which epoch, and to which session the run belongs. */
function findRunFault(
  { row, events }: StoredRun,
  { last, laws, firstPos, endedAt, history }: Audit,
): Fault | undefined {
  if (row === undefined) return createFault('run', 'a row', 'none')
  const { sessionId = 'none', sessionPlace = 'none' } = laws.session ?? {}
  const due = { head_seq: last.seq, head_hash: last.hash, pos: firstPos, ended_at: endedAt, history }
  for (const [column, value] of Object.entries(due)) {
    const found = row[column as keyof typeof due]
    if (found !== value) return createFault(column, String(value), String(found))
  }
  const [dueSession, session] = [
    `${sessionPlace} of ${sessionId}`,
    `${row.session_place ?? 'none'} of ${row.session_id ?? 'none'}`,
  ]
  if (dueSession !== session) return createFault('session', dueSession, session)
  if (row.epoch < last.epoch) return createFault('epoch', `${last.epoch} or more`, row.epoch)
  if (events !== last.seq) return createFault('event rows', last.seq, events)
  const seal = sealRun(row)
  return seal === row.seal ? undefined : createFault('seal', seal, row.seal)
}

/** How far an audit of a run came, and what stopped it. */
export interface Progress {
  /** Sound events, from the first on. */
  events: number
  broken?: Fault & { readonly seq: number }
  readonly missing: MissingContents
  /** The last of them ends the run. */
  hasEnded: boolean
  readonly family: FamilyAudit
}
