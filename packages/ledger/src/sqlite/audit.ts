import type { RunId } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import { outOfOrder, fault, type Fault } from '../format/event-row.ts'
import { isHistoryRow, type HistoryRow } from '../format/history.ts'
import type { AuditedRow, EventRange, StoredRun } from '../store/store.ts'
import { openSqlite } from './open-database.ts'
import { batchOf, eventColumnsText, type SqliteRecords, Statements } from './records.ts'
import { isDerived, makeSchema } from './schema.ts'

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** How many messages are checked at once. */
const messagesPerBatch = 256

interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/** What `verify` asks of an open file. All of it is synchronous. */
export class SqliteAudit {
  readonly #database: Database
  readonly #records: SqliteRecords
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database, records: SqliteRecords) {
    this.#database = database
    this.#records = records
    this.#statements = statementsOf(database)
  }

  run(runId: RunId): StoredRun | undefined {
    return this.#database.transaction(() => {
      const { events = 0, lastSeq } = this.#statements.extent.get(runId) ?? {}
      const row = this.#records.run(runId)
      if (row === undefined && events === 0) return undefined
      return { events, lastSeq: lastSeq ?? 0, ...(row && { row }) }
    })()
  }

  events({ runId, fromSeq, toSeq }: EventRange): readonly AuditedRow[] {
    return batchOf(this.#statements.events.iterate(runId, fromSeq, toSeq), (row, last) => {
      if (last && row.seq < last.seq) throw outOfOrder(`the events of run ${runId}`)
    })
  }

  orphans(): readonly string[] {
    return this.#statements.orphans.all(maxOrphans)
  }

  /** The first fault of the file as a whole, its messages aside. */
  fault(): Fault | undefined {
    return this.#database.transaction(
      () => this.#pageFault() ?? this.#numberingFault() ?? this.#strayFault() ?? this.#schemaFault(),
    )()
  }

  /** The first fault of some messages after one, or the last of them, from which to go on. */
  historyFault(after: string): { readonly fault: Fault } | { readonly next: string } | undefined {
    const rows = this.#statements.history.all(after)
    const damaged = rows.find((row) => !isHistoryRow(row))
    if (damaged) return { fault: fault('history', 'the message of its digest', damaged.digest) }
    const last = rows.at(-1)
    return last && { next: last.digest }
  }

  #pageFault(): Fault | undefined {
    const [first] = this.#database.pragma('integrity_check(1)') as readonly { integrity_check: string }[]
    const found = first?.integrity_check ?? 'no answer'
    return found === 'ok' ? undefined : fault('pages', 'ok', found)
  }

  /** Places are given without gaps and never again, so what was removed leaves a hole. */
  #numberingFault(): Fault | undefined {
    const given = this.#statements.given.get() ?? 0
    const due = given - (this.#statements.dropped.get() ?? 0)
    const all = this.#statements.count.get() ?? 0
    const placed = this.#statements.placed.get(given) ?? 0
    if (all !== due) return fault('event rows', due, all)
    return placed === due ? undefined : fault('event rows within the places given', due, placed)
  }

  /** Every row refers to one that is there. */
  #strayFault(): Fault | undefined {
    const [stray] = this.#database.pragma('foreign_key_check') as readonly { table: string; parent: string }[]
    if (stray) return fault(`${stray.table} rows`, `each with its ${stray.parent}`, 'one without')
    const entries = this.#statements.strayEntries.get() ?? 0
    if (entries > 0) return fault('inbox entries that fit no run', 0, entries)
    const removals = this.#statements.strayRemovals.get() ?? 0
    if (removals > 0) return fault('removals of no event', 0, removals)
    const messages = this.#statements.strayMessages.get() ?? 0
    return messages === 0 ? undefined : fault('messages that no run begins with', 0, messages)
  }

  /** Tables, indexes and triggers that are not as they were made: without them nothing is append-only. */
  #schemaFault(): Fault | undefined {
    const due = schemaAsMade()
    const present = objectsOf(this.#database)
    for (const [name, text] of due) {
      const found = present.get(name)
      if (isDerived(name) || found === text) continue
      return fault(name, 'as format 1 has it', found === undefined ? 'missing' : 'another')
    }
    const added = [...present.keys()].find((name) => name.startsWith('trigger') && !due.has(name))
    return added === undefined ? undefined : fault(added, 'no such trigger', 'one that was added')
  }
}

/** The schema of a file that holds nothing else. */
function schemaAsMade(): ReadonlyMap<string, string> {
  const database = openSqlite(':memory:')
  try {
    makeSchema(database)
    return objectsOf(database)
  } finally {
    database.close()
  }
}

function objectsOf(database: Database): ReadonlyMap<string, string> {
  const objects = database
    .prepare<[], SchemaObject>('select type, name, sql from sqlite_schema where sql is not null')
    .all()
  return new Map(objects.map(({ type, name, sql }) => [`${type} ${name}`, sql ?? '']))
}

function statementsOf(database: Database) {
  const statements = new Statements(database)
  return {
    extent: statements.rows<{ readonly events: number; readonly lastSeq: number | null }>(
      'select count(*) as events, max(seq) as lastSeq from event where run_id = ?',
    ),
    events: statements.rows<AuditedRow>(
      `select ${eventColumnsText}, removal.digest as removal from event
        left join removal on removal.run_id = event.run_id and removal.seq = event.seq and removal.kind <> 'dropped'
        where event.run_id = ? and event.seq >= ? and event.seq <= ? order by event.seq`,
    ),
    orphans: statements.values<string>(
      `select distinct run_id from event where run_id not in (select run_id from run where pos < ${Number.MAX_SAFE_INTEGER}) limit ?`,
    ),
    given: statements.values<number>(`select seq from sqlite_sequence where name = 'event'`),
    count: statements.values<number>('select count(*) from event'),
    placed: statements.values<number>('select count(*) from event where pos between 1 and ?'),
    dropped: statements.values<number>(`select coalesce(sum(seq), 0) from removal where kind = 'dropped'`),
    strayEntries: statements.values<number>(
      `select count(*) from inbox join run using (run_id) where taken_seq not between 1 and head_seq`,
    ),
    strayRemovals: statements.values<number>(
      `select count(*) from removal where pos < 1 or case kind when 'dropped' then run_id in (select run_id from run)
        else not exists (select 1 from event where event.run_id = removal.run_id and event.seq = removal.seq and commitment is not null)
          and not exists (select 1 from removal as dropped where dropped.run_id = removal.run_id and dropped.kind = 'dropped') end`,
    ),
    strayMessages: statements.values<number>(
      `select count(*) from history where digest not in (select history from run where history is not null)
        and digest not in (select before from history where before is not null)`,
    ),
    history: statements.rows<HistoryRow>(
      `select digest, before, message from history where digest > ? order by digest limit ${messagesPerBatch}`,
    ),
  }
}
