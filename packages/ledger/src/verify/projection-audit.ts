import { type Ledger, type RunId } from '@tallystick/core'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import type { AuditedRun } from './event-audit.ts'
import { fault, type Fault } from '../record/link-check.ts'
import { AuditedProjections } from './audited-projections.ts'
import { orElse } from '../projection/refresh/projection-lag.ts'
import { ProjectionTables } from '../projection/refresh/projection-tables.ts'
import { writtenRun, type StoredRunRow, type WrittenRun } from '../projection/summary/stored-run.ts'
import { recordOf } from '../projection/summary/summary-record.ts'
import { snapshotBytes, snapshotDigest } from '../projection/snapshot/bound-state.ts'
import { snapshotNear, snapshotPlaces } from '../projection/snapshot/snapshots.ts'
import { hexOf } from '../record/chain.ts'
import { projectionDatabaseOf, type ProjectionDatabase } from '../projection/tables/projection-database.ts'

/** What a store has projected from one run, as it was before the audit of its events began. */
interface RunProjections {
  /** The cursor up to which projections cover every event; `undefined` without projections of this version. */
  readonly cursor: string | undefined
  readonly row: StoredRunRow | undefined
  readonly agents: readonly string[]
  /** The events after which there are snapshots of this code. */
  readonly snapshots: readonly number[]
}

/** An event to which an audit came, the link of the row that holds it, and what was known of the run after it. */
export interface AuditedPlace extends AuditedRun {
  readonly seq: number
  readonly hash: Uint8Array
}

/** Compares what was projected from a run with what an audit of its events comes to. */
export class ProjectionAudit {
  readonly #database: ProjectionDatabase
  readonly #runId: RunId
  readonly #projections: RunProjections
  /** The events after which something was projected. */
  readonly #places: readonly number[]
  fault: Fault | undefined

  constructor(database: ProjectionDatabase, runId: RunId, projections: RunProjections) {
    this.#database = database
    this.#runId = runId
    this.#projections = projections
    const { row, snapshots } = projections
    this.#places = row ? [row.seq, ...snapshots] : snapshots
  }

  /** Whether there is anything to compare. */
  get isAny(): boolean {
    return this.#places.length > 0
  }

  /** Whether anything was projected after one of these events, both ends included. */
  concerns(fromSeq: number, toSeq: number): boolean {
    for (const seq of this.#places) if (fromSeq <= seq && seq <= toSeq) return true
    return false
  }

  /** Compares what was projected after an event, to which the audit came. */
  async check(place: AuditedPlace): Promise<void> {
    const { row, snapshots } = this.#projections
    if (row?.seq === place.seq) this.#note(await this.#rowFault(row, place))
    if (snapshots.includes(place.seq)) this.#note(await this.#snapshotFault(place))
  }

  /** Each projection has to be after an event of the run; a missing one may still come. */
  async end(lastSeq: number): Promise<void> {
    const { row, cursor, snapshots } = this.#projections
    const late = snapshots.find((seq) => seq > lastSeq)
    if (late !== undefined)
      this.#note(fault('snapshot', `after one of ${lastSeq} events`, `after event ${late}`))
    if (row && row.seq > lastSeq) this.#note(fault('projection', `of ${lastSeq} events`, `of ${row.seq}`))
    const projectedSeq = row?.seq ?? 0
    if (cursor === undefined || cursor === '' || projectedSeq >= lastSeq || row?.summary === null) return
    const isToCome = await orElse(true, () => this.#database.isAfter(cursor, this.#runId, projectedSeq + 1))
    if (!isToCome) this.#note(fault('projection', `of ${lastSeq} events`, `of ${projectedSeq}`))
  }

  #note(found: Fault | undefined): void {
    this.fault ??= found
  }

  async #rowFault(row: StoredRunRow, place: AuditedPlace): Promise<Fault | undefined> {
    const { state, accumulated } = place
    const record = state && accumulated && recordOf(state, accumulated)
    // What was forgotten is made anew.
    if (record === undefined || row.summary === null) return undefined
    const [run] = await orElse([], () => new ProjectionTables(this.#database).places([this.#runId]))
    if (run === undefined) return undefined
    const due = writtenRun({ ...run, headHash: place.hash }, record)
    const found: WrittenRun = { ...row, head_hash: hexOf(row.head_hash), agents: this.#projections.agents }
    const differing = (Object.keys(due) as (keyof WrittenRun)[]).find(
      (column) => comparable(column, due[column]) !== comparable(column, found[column]),
    )
    return differing && fault('projection', `its ${differing} as its events say`, 'another')
  }

  async #snapshotFault({ seq, state, outline, carried }: AuditedPlace): Promise<Fault | undefined> {
    const snapshot = await orElse(undefined, () => snapshotNear(this.#database, this.#runId, seq))
    if (state === undefined || outline === undefined) return undefined
    const isSound =
      snapshot?.seq === seq &&
      Buffer.compare(snapshotDigest(this.#runId, snapshot), snapshot.seal) === 0 &&
      Buffer.compare(snapshot.state, snapshotBytes({ state, outline }, carried)) === 0
    return isSound
      ? undefined
      : fault(`snapshot at event ${seq}`, 'the state and the outline there', 'another')
  }
}

/** What a store has projected from a run; `undefined` where it derives nothing, or nothing of it can be read. */
export async function projectionAuditOf(ledger: Ledger, runId: RunId): Promise<ProjectionAudit | undefined> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, async () => {
    const tables = new ProjectionTables(database)
    // First, so that no row that is written meanwhile can be older than it.
    const cursor = await tables.cursorOfThisCode()
    const [row] = cursor === undefined ? [] : await tables.rows([runId])
    const agents = row ? await new AuditedProjections(database).agentsAt(row.pos) : []
    return new ProjectionAudit(database, runId, {
      cursor,
      row,
      agents,
      snapshots: await snapshotPlaces(database, runId),
    })
  })
}

/** JSON says the same in whatever order; and so does a set. */
function comparable(column: keyof WrittenRun, value: WrittenRun[keyof WrittenRun]): string {
  if (Array.isArray(value))
    return (value as readonly string[]).toSorted((a, b) => (a < b ? -1 : 1)).join('\n')
  if (typeof value !== 'string' || !['shares', 'summary', 'notes'].includes(column)) return String(value)
  try {
    return canonicalJson(JSON.parse(value) as Json)
  } catch {
    return value
  }
}
