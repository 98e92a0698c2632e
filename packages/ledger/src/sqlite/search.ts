import type { RunId } from '@tallystick/core'
import { isStorableName } from '@tallystick/core/store-kit'
import type { Database, Statement } from 'better-sqlite3'
import { Kysely, sql, SqliteDialect, type Compilable, type RawBuilder } from 'kysely'
import { isRunId } from '../format/event-row.ts'
import {
  everyEvent,
  isTimed,
  toBatch,
  type AskedEvents,
  type Cursor,
  type FoundBatch,
  type FoundRow,
  type SearchedRun,
  type SearchSource,
} from '../store/find-events.ts'
import type { BegunTail, TailStart } from '../store/tail-events.ts'
import { batchOf, charactersPerBatch, eventColumnsText, rowsPerBatch, type SqliteRecords } from './records.ts'
import { rareType } from '../store/store.ts'
import type { LedgerTables, RunRow } from './schema.ts'

/** A batch looks at this many events at most, so that a search for what is rare gives others their turn. */
const maxScanned = 8192

/** One writer at a time holds the file, so the order of `pos` is that of commits. */
const xid = '0'

type Places = { readonly fromPos: number | null; readonly toPos: number | null }

/** What searches and tails ask of an open file. All of it is synchronous. */
export class SqliteSearch {
  readonly #database: Database
  readonly #records: SqliteRecords
  readonly #tables: Kysely<LedgerTables>
  readonly #prepared = new Map<string, Statement>()

  constructor(database: Database, records: SqliteRecords) {
    this.#database = database
    this.#records = records
    this.#tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  }

  runs({ runId, sessionId, toolCallId }: AskedEvents): readonly SearchedRun[] {
    if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
    const rows =
      toolCallId === null ? this.#named(runId, sessionId) : this.#withCall(toolCallId, runId, sessionId)
    return rows.flatMap(({ run_id, pos, head_seq }) =>
      isRunId(run_id) ? [{ runId: run_id, pos, headSeq: head_seq }] : [],
    )
  }

  places(asked: AskedEvents): { readonly fromPos: number; readonly toPos: number } | undefined {
    const { fromAt, toAt } = asked
    const [found] = isTimed(asked)
      ? this.#all(
          sql<Places>`select min(pos) as fromPos, max(pos) as toPos from event where at >= ${fromAt} and at <= ${toAt}`,
        )
      : // One query each, so that each reads one end of the table.
        this.#all(
          sql<Places>`select (select min(pos) from event) as fromPos, (select max(pos) from event) as toPos`,
        )
    const { fromPos = null, toPos = null } = found ?? {}
    return fromPos === null || toPos === null ? undefined : { fromPos, toPos }
  }

  batch(asked: AskedEvents, source: SearchSource, after: Cursor): FoundBatch {
    const scanned = scannedTo(source, after)
    const rows = batchOf(this.#iterate(this.#batchQuery(asked, source, after, scanned)))
    const isFull =
      rows.length === rowsPerBatch ||
      rows.reduce((sum, { body }) => sum + body.length, 0) >= charactersPerBatch
    return toBatch(rows, isFull, source, scanned)
  }

  beginTail(after: TailStart): BegunTail {
    const toPos = this.places(everyEvent)?.toPos ?? 0
    const [row] = this.#all(
      this.#tables.selectFrom('event').select(['run_id', 'hash']).where('pos', '=', after.pos),
    )
    const [dropped] = this.#all(
      sql`select 1 from removal where run_id = ${after.runId} and kind = 'dropped' limit 1`,
    )
    return {
      atCursor: row && after.xid === xid ? { runId: row.run_id, hash: row.hash } : undefined,
      isDropped: dropped !== undefined && after.xid === xid,
      batch: async ({ pos }) => {
        const { rows, next } = this.#batchAfter(pos, toPos)
        return { rows: rows.map((found) => ({ ...found, xid })), isLast: next === undefined }
      },
    }
  }

  /** The next batch that holds anything; an empty one after the last. */
  #batchAfter(fromPos: number, toPos: number): FoundBatch {
    const source = { by: 'place', fromPos, toPos } as const
    let batch = this.batch(everyEvent, source, { pos: fromPos, seq: 0 })
    while (batch.rows.length === 0 && batch.next) batch = this.batch(everyEvent, source, batch.next)
    return batch
  }

  /** The index of each source by its name, since without figures about a file SQLite would take the wrong one. */
  #batchQuery(
    asked: AskedEvents,
    source: SearchSource,
    after: Cursor,
    scanned: Cursor,
  ): RawBuilder<FoundRow> {
    const { index, where } = this.#sourceOf(asked, source)
    const [order, from, to] =
      source.by === 'place'
        ? [sql`event.pos`, after.pos, scanned.pos]
        : [sql`event.seq`, ...this.#seqsOf(source, after, scanned)]
    return sql<FoundRow>`select ${sql.raw(eventColumnsText)},
        previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
      from event ${sql.raw(index)} left join event as previous
        on previous.run_id = event.run_id and previous.seq = event.seq - 1
      where ${where} and ${order} > ${from} and ${order} <= ${to} and ${passes(asked, source)} order by ${order}`
  }

  #sourceOf(
    { toolCallId }: AskedEvents,
    source: SearchSource,
  ): { readonly index: string; readonly where: RawBuilder<unknown> } {
    if (source.by === 'place') return { index: '', where: sql`true` }
    const ofRun = sql`event.run_id = ${source.run.runId}`
    if (source.by === 'type') {
      const where = sql`${ofRun} and event.type = ${source.type} and event.${sql.raw(rareType)}`
      return { index: 'indexed by event_type', where }
    }
    if (source.by !== 'call') return { index: '', where: ofRun }
    return { index: 'indexed by event_call', where: sql`event.tool_call_id = ${toolCallId} and ${ofRun}` }
  }

  /** The events of a run that may be asked for: turns never fall from one event to the next. */
  #seqsOf(
    source: Exclude<SearchSource, { readonly by: 'place' }>,
    after: Cursor,
    scanned: Cursor,
  ): [number, number] {
    if (source.by !== 'turn') return [after.seq, scanned.seq]
    const first = this.#firstOfTurn(source.run, source.turn)
    const next = this.#firstOfTurn(source.run, source.turn + 1)
    return [Math.max(after.seq, first - 1), next - 1]
  }

  /** The number of the first event of a turn or a later one; one more than the head if the run has none. */
  #firstOfTurn({ runId, headSeq }: SearchedRun, turn: number): number {
    let [from, to] = [1, headSeq + 1]
    while (from < to) {
      const middle = Math.floor((from + to) / 2)
      const [row] = this.#all(
        sql<{ readonly turn: number }>`select turn from event where run_id = ${runId} and seq = ${middle}`,
      )
      if (row === undefined || row.turn >= turn) to = middle
      else from = middle + 1
    }
    return from
  }

  #named(runId: RunId | undefined, sessionId: string | undefined): readonly RunRow[] {
    if (runId === undefined) return this.#records.sessionRuns(sessionId ?? '')
    const row = this.#records.run(runId)
    return row && (sessionId === undefined || row.session_id === sessionId) ? [row] : []
  }

  #withCall(toolCallId: string, runId: RunId | undefined, sessionId: string | undefined): readonly RunRow[] {
    const called = this.#all(
      this.#tables.selectFrom('event').select('run_id').distinct().where('tool_call_id', '=', toolCallId),
    )
    return called.flatMap(({ run_id }) => {
      const isAsked = isRunId(run_id) && (runId === undefined || run_id === runId)
      return isAsked ? this.#named(run_id, sessionId) : []
    })
  }

  #all<Row>(query: Query<Row>): readonly Row[] {
    return [...this.#iterate(query)]
  }

  #iterate<Row>(query: Query<Row>): Iterable<Row> {
    const { sql: text, parameters } = (query as RawBuilder<Row>).compile(this.#tables)
    const statement = this.#prepared.get(text) ?? this.#database.prepare(text)
    this.#prepared.set(text, statement)
    return statement.iterate(...parameters) as Iterable<Row>
  }
}

/** A query of Kysely, built or written out. */
type Query<Row> = Compilable<Row> | RawBuilder<Row>

/** The filters that no source applies, in a form that tempts no planner to another index. */
function passes(asked: AskedEvents, source: SearchSource): RawBuilder<unknown> {
  const conditions: RawBuilder<unknown>[] = [sql`true`]
  const types = source.by === 'run' ? (source.types ?? asked.types) : asked.types
  if (isTimed(asked)) conditions.push(sql`+event.at >= ${asked.fromAt} and +event.at <= ${asked.toAt}`)
  if (asked.turn !== null) conditions.push(sql`+event.turn = ${asked.turn}`)
  if (asked.toolCallId !== null) conditions.push(sql`+event.tool_call_id = ${asked.toolCallId}`)
  if (types !== null)
    conditions.push(sql`+event.type in (select value from json_each(${JSON.stringify(types)}))`)
  return sql.join(conditions, sql` and `)
}

/** How far a batch looks. The indexes by type and call pass over nothing, and the events of a turn are searched at once. */
function scannedTo(source: SearchSource, { pos, seq }: Cursor): Cursor {
  if (source.by === 'place') return { pos: Math.min(pos + maxScanned, source.toPos), seq }
  const { headSeq } = source.run
  return { pos, seq: source.by === 'run' ? Math.min(seq + maxScanned, headSeq) : headSeq }
}
