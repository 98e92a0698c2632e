import type { Ledger, RunId } from '@tallystick/core'
import { toCanonicalJson, type Json } from '@tallystick/core/vocabulary'
import { createFault, type Fault } from '../format/event-row.ts'
import type { StoreDatabase } from '../store/database.ts'
import { getDatabase, orElse } from '../store/store.ts'
import { ProjectionTables, type StoredRunRow, toRunRow } from '../projection/projections.ts'
import { toSummaryRecord } from '../projection/run-summary.ts'
import { sealSnapshot, findSnapshot, listSnapshotPlaces, encodeSnapshot } from '../projection/snapshots.ts'
import type { AuditedRun } from './event-audit.ts'

/** An event, its hash, and the run after it. */
export interface AuditedPlace extends AuditedRun {
  readonly seq: number
  readonly hash: string
}

/** Compares what was projected from a run with what an audit of its events comes to. */
export class ProjectionAudit {
  readonly #database: StoreDatabase
  readonly #runId: RunId
  readonly #row: StoredRunRow | undefined
  /** The events after which there are snapshots of this code. */
  readonly #snapshots: readonly number[]
  fault: Fault | undefined

  constructor(
    database: StoreDatabase,
    runId: RunId,
    row: StoredRunRow | undefined,
    snapshots: readonly number[],
  ) {
    this.#database = database
    this.#runId = runId
    this.#row = row
    this.#snapshots = snapshots
  }

  get isAny(): boolean {
    return this.#row !== undefined || this.#snapshots.length > 0
  }

  concerns(seq: number): boolean {
    return this.#row?.seq === seq || this.#snapshots.includes(seq)
  }

  /** Compares what was projected after an event, to which the audit came. */
  async check(place: AuditedPlace): Promise<void> {
    if (this.#row?.seq === place.seq) this.fault ??= await this.#rowFault(this.#row, place)
    if (this.#snapshots.includes(place.seq)) this.fault ??= await this.#snapshotFault(place)
  }

  /** Each projection has to be after an event of the run; a missing one may still come. */
  end(lastSeq: number): void {
    const late = this.#snapshots.find((seq) => seq > lastSeq)
    if (late !== undefined)
      this.fault ??= createFault('snapshot', `after one of ${lastSeq} events`, `after event ${late}`)
    if (this.#row && this.#row.seq > lastSeq)
      this.fault ??= createFault('projection', `of ${lastSeq} events`, `of ${this.#row.seq}`)
  }

  async #rowFault(row: StoredRunRow, place: AuditedPlace): Promise<Fault | undefined> {
    const { state, accumulated } = place
    const record = state && accumulated && toSummaryRecord(state, accumulated)
    if (record === undefined) return undefined
    const pos = await orElse(undefined, () => new ProjectionTables(this.#database).findPlace(this.#runId))
    if (pos === undefined) return undefined
    const due = toRunRow({ run_id: this.#runId, pos, head_hash: place.hash }, record)
    const differing = (Object.keys(due) as (keyof StoredRunRow)[]).find(
      (column) => toComparable(column, due[column]) !== toComparable(column, row[column]),
    )
    if (differing) return createFault('projection', `its ${differing} as its events say`, 'another')
    const isFound = await orElse(true, () => new ProjectionTables(this.#database).hasTerms(due))
    return isFound ? undefined : createFault('projection', 'a run that its terms find', 'terms are missing')
  }

  async #snapshotFault({ seq, state, carried }: AuditedPlace): Promise<Fault | undefined> {
    const snapshot = await orElse(undefined, () => findSnapshot(this.#database, this.#runId, seq))
    if (state === undefined) return undefined
    const isSound =
      snapshot?.seq === seq &&
      sealSnapshot(this.#runId, snapshot) === snapshot.seal &&
      snapshot.state === encodeSnapshot(state, carried)
    return isSound ? undefined : createFault(`snapshot at event ${seq}`, 'the state there', 'another')
  }
}

/** Reads the projections of a run; `undefined` if the store has none, or they cannot be read. */
export async function beginProjectionAudit(
  ledger: Ledger,
  runId: RunId,
): Promise<ProjectionAudit | undefined> {
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, async () => {
    const tables = new ProjectionTables(database)
    const [row] = (await tables.isOfThisCode()) ? await tables.rows('run_id', [runId]) : []
    return new ProjectionAudit(database, runId, row, await listSnapshotPlaces(database, runId))
  })
}

/** Finds rows of runs that are not there. */
export async function findStrayFault(ledger: Ledger): Promise<Fault | undefined> {
  const database = getDatabase(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, async () => {
    if (!(await new ProjectionTables(database).isOfThisCode())) return undefined
    const [{ strays } = { strays: 0 }] = await database.query(({ db, sql }) =>
      db
        .selectFrom('run_summary')
        .select(sql<number>`count(*)`.as('strays'))
        .where('run_id', 'not in', db.selectFrom('run').select('run_id')),
    )
    return strays === 0 ? undefined : createFault('projections of runs that are not there', 0, strays)
  })
}

/** JSON says the same in whatever order. */
function toComparable(column: keyof StoredRunRow, value: StoredRunRow[keyof StoredRunRow]): string {
  if (typeof value !== 'string' || !['terms', 'summary', 'notes'].includes(column)) return String(value)
  try {
    return toCanonicalJson(JSON.parse(value) as Json)
  } catch {
    return value
  }
}
