import type { RunId } from '@tallystick/core'
import { fault, outOfOrder, type Fault } from '../format/event-row.ts'
import { isHistoryRow, type HistoryRow } from '../format/history.ts'
import { isRunId } from '../format/stored-ids.ts'
import type { AuditedRow, EventRange, StoredRun } from '../store/store.ts'
import { findSchemaFault } from './catalogue.ts'
import type { Connections } from './connections.ts'
import type { DatabasePlace } from './options.ts'
import { boundedText, eventColumnsText, rowsPerBatch, runColumns, type RunRow } from './records.ts'
import { inSchema } from './schema.ts'

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** How many messages are checked at once. */
const messagesPerBatch = 256

/** What is counted, and what it is called where there is any. */
const strays: readonly (readonly [what: string, text: string])[] = [
  [
    'inbox entries that fit no run',
    `select from @.inbox where not exists (
      select from @.run where run.run_id = inbox.run_id and coalesce(inbox.taken_seq, 1) between 1 and run.head_seq)`,
  ],
  [
    'removals of no event',
    `select from @.removal where pos < 1 or case kind when 'dropped' then run_id in (select run_id from @.run)
      else not exists (select from @.event where event.run_id = removal.run_id and event.seq = removal.seq and commitment is not null)
        and not exists (select from @.removal as dropped where dropped.run_id = removal.run_id and dropped.kind = 'dropped') end`,
  ],
  [
    'messages that no run begins with',
    `select from @.history where digest not in (select history from @.run where history is not null)
      and digest not in (select before from @.history where before is not null)`,
  ],
  [
    'references to messages that are not there',
    `select from (select history as name from @.run union all select before from @.history) as named
      where name is not null and name not in (select digest from @.history)`,
  ],
  // The number of the sequence is null to who may not use it.
  [
    'events beyond the places given',
    `select from @.event where pos > (
      select last_value from pg_catalog.pg_sequences
      where sequencename = 'event_pos' and schemaname = (
        select nspname from pg_catalog.pg_namespace join pg_catalog.pg_class on relnamespace = pg_namespace.oid
        where pg_class.oid = '@.event'::regclass
      )
    )`,
  ],
  // A tail would yield such an event before the one that it follows. Numbers of another server, as after a dump was
  // restored, order nothing.
  [
    'events written before the one that they follow',
    `select from @.event join @.event as previous on previous.run_id = event.run_id and previous.seq = event.seq - 1
      where previous.xid > event.xid and previous.xid < pg_snapshot_xmax(pg_current_snapshot())`,
  ],
]

/** What `verify` asks of a schema. It may go through all there is. */
export class PostgresAudit {
  readonly #connections: Connections
  readonly #place: DatabasePlace

  constructor(connections: Connections, place: DatabasePlace) {
    this.#connections = connections
    this.#place = place
  }

  #ask<Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#connections.patiently<Row>({ text: inSchema(text, this.#place.quotedSchema), values })
  }

  /** In one statement, and so at one moment. */
  async run(runId: RunId): Promise<StoredRun | undefined> {
    if (!isRunId(runId)) return undefined
    const [found] = await this.#connections.rows<
      { readonly events: number; readonly last_seq: number | null } & {
        readonly [Name in keyof RunRow]: RunRow[Name] | null
      }
    >({
      text: inSchema(
        `select extent.*, ${runColumns} from (
          select count(*) as events, max(seq) as last_seq from @.event where run_id = $1
        ) as extent left join @.run on run.run_id = $1`,
        this.#place.quotedSchema,
      ),
      values: [runId],
    })
    if (found === undefined) return undefined
    const { events, last_seq: lastSeq, ...row } = found
    if (row.run_id === null && events === 0) return undefined
    return { events, lastSeq: lastSeq ?? 0, ...(row.run_id !== null && { row: row as RunRow }) }
  }

  async events({ runId, fromSeq, toSeq }: EventRange): Promise<readonly AuditedRow[]> {
    if (!isRunId(runId)) return []
    const text = boundedText(
      `select ${eventColumnsText}, (
          select digest from @.removal where removal.run_id = event.run_id and removal.seq = event.seq and kind <> 'dropped' limit 1
        ) as removal
        from @.event where run_id = $1 and seq >= $2 and seq <= $3 order by seq limit ${rowsPerBatch}`,
      'seq',
    )
    const rows = await this.#connections.rows<AuditedRow>({
      text: inSchema(text, this.#place.quotedSchema),
      values: [runId, fromSeq, toSeq],
    })
    let last = fromSeq
    for (const { seq } of rows) {
      if (seq < last) throw outOfOrder(`the events of run ${runId}`)
      last = seq
    }
    return rows
  }

  async orphans(): Promise<readonly string[]> {
    const rows = await this.#ask<{ readonly run_id: string }>(
      `select distinct run_id from @.event
        where run_id not in (select run_id from @.run where pos < ${Number.MAX_SAFE_INTEGER}) limit ${maxOrphans}`,
    )
    return rows.map(({ run_id }) => run_id)
  }

  /** The first fault of the store as a whole. */
  async fault(): Promise<Fault | undefined> {
    const changed = await findSchemaFault(this.#connections, this.#place)
    if (changed) return changed
    for (const [what, text] of strays) {
      const [found] = await this.#ask<{ readonly count: number }>(
        `select count(*) as count from (${text}) as stray`,
      )
      if (found && found.count > 0) return fault(what, 0, found.count)
    }
    for (let after = ''; ;) {
      const rows = await this.#ask<HistoryRow>(
        `select digest, before, message from @.history where digest > $1 order by digest limit ${messagesPerBatch}`,
        [after],
      )
      const damaged = rows.find((row) => !isHistoryRow(row))
      if (damaged) return fault('history', 'the message of its digest', damaged.digest)
      const last = rows.at(-1)
      if (last === undefined) return undefined
      after = last.digest
    }
  }
}
