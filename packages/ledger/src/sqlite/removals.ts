import type { RunId } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import {
  commitTo,
  firstRemoval,
  linkRemovals,
  removalColumns,
  type RemovalLink,
  type RemovalRequest,
  type RemovalRow,
  type RunCell,
} from '../format/chain.ts'
import type { EventRow } from '../format/event-row.ts'
import { forgetTexts } from '../projection/change.ts'
import type { Batch, EndedRun, RemovableQuery } from '../store/store.ts'
import { eventColumnsText, type SqliteRecords, Statements } from './records.ts'
import { sqliteDialect } from './projections.ts'

/** A search looks at this many places at most, so that others get their turn. */
const maxScanned = 8192
const removalsPerBatch = 256

/** What is removed from an open file. All of it is synchronous. */
export class SqliteRemovals {
  readonly #records: SqliteRecords
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database, records: SqliteRecords) {
    this.#records = records
    this.#statements = statementsOf(database)
  }

  after(pos: number, runId?: RunId): readonly RemovalRow[] {
    return runId === undefined ? this.#statements.all.all(pos) : this.#statements.ofRun.all(runId, pos)
  }

  removable({ types, before, afterPos, limit }: RemovableQuery): Batch<EventRow> {
    const lastPos = this.#statements.lastPos.get() ?? 0
    const toPos = afterPos + maxScanned
    const items = this.#statements.removable.all(afterPos, toPos, before, JSON.stringify(types), limit)
    const last = items.at(-1)
    if (last && items.length >= limit) return { items, next: last.pos }
    return toPos < lastPos ? { items, next: toPos } : { items }
  }

  endedRuns({ before, afterPos, limit }: Omit<RemovableQuery, 'types'>): Batch<EndedRun> {
    const listed = this.#statements.listed.all(afterPos, limit)
    const items = listed.filter(({ endedAt }) => endedAt !== null && endedAt < before)
    const last = listed.at(-1)
    return last && listed.length >= limit ? { items, next: last.pos } : { items }
  }

  /** Call it within a transaction. Returns how many events lost their content. */
  remove(requests: readonly RemovalRequest[]): number {
    const present = requests.filter((request) => this.#isPresent(request))
    const last: RemovalLink = this.#statements.last.get() ?? firstRemoval
    for (const row of linkRemovals(last, present)) {
      this.#statements.insert.run(...removalColumns.map((column) => row[column]))
    }
    let removed = 0
    for (const request of present) {
      if ('body' in request) {
        this.#replaceBody(request.runId, request.seq, request.body)
        removed++
      } else removed += this.#drop(request.runId)
    }
    for (const runId of new Set(present.map((request) => request.runId))) {
      this.#records.blankInbox(runId)
      // What was projected from the run may hold what is gone.
      for (const text of this.#statements.forget()) text.run({ runId })
    }
    return removed
  }

  #isPresent(request: RemovalRequest): boolean {
    const { runId, seq } = request
    if ('body' in request) return this.#statements.isWhole.get(runId, seq) !== undefined
    return this.#records.run(runId) !== undefined
  }

  #replaceBody(runId: RunId, seq: number, body: string): void {
    const { salt, body: said, type } = this.#statements.content.get(runId, seq) as EventRow
    this.#statements.replace.run(body, commitTo(salt as string, said), runId, seq)
    if (type === 'history_carried' && seq === 2) this.#releaseHistory(runId)
  }

  /** The messages that no other run begins with go. */
  #releaseHistory(runId: RunId): void {
    const run = this.#records.run(runId)
    if (run?.history == null) return
    const { seal: _seal, ...cell } = run
    this.#records.writeRun({ ...cell, history: null } satisfies RunCell)
    this.#deleteUnused(run.history)
  }

  #deleteUnused(name: string): void {
    // Messages that came only before this one are unused then.
    for (let next: string | null | undefined = name; next != null;) {
      next = this.#statements.deleteUnused.get({ digest: next })
    }
  }

  #drop(runId: RunId): number {
    const run = this.#records.run(runId)
    const { deleteInbox, deleteEvents, deleteRun } = this.#statements
    for (const statement of [deleteInbox, deleteEvents, deleteRun]) statement.run(runId)
    if (run?.history != null) this.#deleteUnused(run.history)
    return run?.head_seq ?? 0
  }
}

function statementsOf(database: Database) {
  const statements = new Statements(database)
  return {
    all: statements.rows<RemovalRow>(
      `select * from removal where pos > ? order by pos limit ${removalsPerBatch}`,
    ),
    ofRun: statements.rows<RemovalRow>(
      `select * from removal where run_id = ? and pos > ? order by pos limit ${removalsPerBatch}`,
    ),
    last: statements.rows<RemovalLink>('select pos, hash from removal order by pos desc limit 1'),
    insert: statements.rows(
      `insert into removal (${removalColumns.join(', ')}) values (${removalColumns.map(() => '?').join(', ')})`,
    ),
    lastPos: statements.values<number | null>('select max(pos) from event'),
    // The plus keeps the index by time out of it: places are what the search continues by.
    removable: statements.rows<EventRow>(
      `select ${eventColumnsText} from event join run using (run_id)
        where event.pos > ? and event.pos <= ? and +event.at < ? and event.commitment is null
          and event.type in (select value from json_each(?)) and run.ended_at is not null order by event.pos limit ?`,
    ),
    listed: statements.rows<EndedRun & { readonly endedAt: number | null }>(
      `select run_id as runId, pos, head_seq as headSeq, head_hash as headHash, ended_at as endedAt
        from run where pos > ? order by pos limit ?`,
    ),
    isWhole: statements.values<number>(
      'select 1 from event where run_id = ? and seq = ? and commitment is null',
    ),
    content: statements.rows<EventRow>('select salt, body, type from event where run_id = ? and seq = ?'),
    replace: statements.rows(
      'update event set body = ?, salt = null, commitment = ? where run_id = ? and seq = ?',
    ),
    deleteUnused: statements.values<string | null>(
      `delete from history where digest = $digest and not exists (select 1 from run where history = $digest)
        and not exists (select 1 from history as later where later.before = $digest) returning before`,
    ),
    deleteInbox: statements.rows('delete from inbox where run_id = ?'),
    deleteEvents: statements.rows('delete from event where run_id = ?'),
    deleteRun: statements.rows('delete from run where run_id = ?'),
    // Prepared when needed: those tables may be missing.
    forget: () => forgetTexts(sqliteDialect, '$runId').map((text) => statements.rows(text)),
  }
}
