import type { RunId } from '@tallystick/core'
import { fault, type Fault, isRunId, outOfOrder } from '../format/event-row.ts'
import { type HistoryRow, isHistoryRow } from '../format/history.ts'
import type { AuditedRow, EventRange, StoredRun } from '../store/store.ts'
import type { Connections } from './connections.ts'
import type { DatabasePlace } from './options.ts'
import { boundedText, eventColumnsText, rowsPerBatch, runColumns, type RunRow } from './records.ts'
import { functions, inSchema, tables } from './schema.ts'

/** One column, index, reference, trigger or function of a schema, as the catalogue of the database tells it. */
interface SchemaObject {
  readonly name: string
  readonly definition: string
}

/** Every version of Postgres returns the same rows for it. */
const objectsText = `with tables as (
    select pg_class.oid, relname, relpersistence, relrowsecurity from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relname in ('run', 'event', 'inbox', 'removal', 'history') and relkind in ('r', 'p')
  )
  select name, definition from (
    select 'table ' || relname as name, case relpersistence when 'p' then 'logged' else 'unlogged' end
      || case when relrowsecurity then ' with row security' else '' end as definition
    from tables
    union all
    select 'column ' || relname || '.' || attname,
      format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end
        || case attidentity when '' then '' else ' identity' end
        || case when atttypid in ('text'::regtype) then ' collate ' || collname else '' end
    from tables join pg_catalog.pg_attribute on attrelid = tables.oid and attnum > 0 and not attisdropped
    left join pg_catalog.pg_collation on pg_collation.oid = attcollation
    union all
    select 'index ' || index_class.relname, pg_get_indexdef(indexrelid) || case when indisvalid then '' else ' invalid' end
    from tables join pg_catalog.pg_index on indrelid = tables.oid
    join pg_catalog.pg_class index_class on index_class.oid = indexrelid
    union all
    select 'reference ' || tables.relname || '.' || conname, pg_get_constraintdef(pg_constraint.oid)
    from tables join pg_catalog.pg_constraint on conrelid = tables.oid and contype = 'f'
    union all
    select 'trigger ' || tables.relname || '.' || tgname,
      pg_get_triggerdef(pg_trigger.oid) || case tgenabled when 'A' then '' else ' disabled' end
    from tables join pg_catalog.pg_trigger on tgrelid = tables.oid and not tgisinternal
    union all
    select 'rewrite ' || tables.relname || '.' || rulename, pg_get_ruledef(pg_rewrite.oid)
    from tables join pg_catalog.pg_rewrite on ev_class = tables.oid
    union all
    select 'function ' || proname, prosrc from pg_catalog.pg_proc
    join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
    where nspname = $1 and proname in ('refuse', 'event_follows', 'event_stays', 'only_dropped', 'run_begins', 'inbox_opens')
  ) as rules order by name collate "C"`

/** What a schema has that makes it a ledger: `@` replaces its name. */
export async function schemaObjects(
  connections: Pick<Connections, 'patiently'>,
  { schema, quotedSchema }: Pick<DatabasePlace, 'schema' | 'quotedSchema'>,
): Promise<ReadonlyMap<string, string>> {
  const rows = await connections.patiently<SchemaObject>({ text: objectsText, values: [schema] })
  const named = (identifier: string): string =>
    identifier.startsWith('"') ? identifier.slice(1, -1).replaceAll('""', '"') : identifier
  return new Map(
    rows.map(({ name, definition }) => [
      name,
      name.startsWith('function ')
        ? definition.replaceAll(`${quotedSchema}.`, '@.')
        : definition.replace(
            /\b(ON|FUNCTION|REFERENCES) ("(?:[^"]|"")*"|[^\s".]+)\./g,
            (all, word: string, identifier: string) => (named(identifier) === schema ? `${word} @.` : all),
          ),
    ]),
  )
}

/**
 * The first object that is not as format 1 has it: without its triggers nothing is append-only, without its indexes nothing
 * is unique. Columns and indexes that others add are left in peace; a trigger or a rewriting rule that is added could
 * change what is written.
 */
async function findSchemaFault(connections: Connections, place: DatabasePlace): Promise<Fault | undefined> {
  const present = await schemaObjects(connections, place)
  for (const [name, definition] of objectsAsMade) {
    const found = present.get(name)
    if (found !== definition)
      return fault(name, 'as format 1 has it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find(
    (name) => /^(trigger|rewrite) /.test(name) && !objectsAsMade.has(name),
  )
  return added === undefined ? undefined : fault(added, 'none', 'one that was added')
}

/** What the schema makes, as the catalogue tells it. A test holds the two together. */
export const objectsAsMade: ReadonlyMap<string, string> = new Map([
  ...Object.keys(tables).map((name) => [`table ${name}`, 'logged'] as const),
  ...Object.entries(functions).map(([name, source]) => [`function ${name}`, `\n${source}\n`] as const),
  ['column event.at', 'bigint not null'],
  ['column event.attempt', 'bigint'],
  ['column event.body', 'text not null collate default'],
  ['column event.commitment', 'text collate C'],
  ['column event.epoch', 'bigint not null'],
  ['column event.hash', 'text not null collate C'],
  ['column event.key_id', 'text collate C'],
  ['column event.pos', 'bigint not null'],
  ['column event.run_id', 'text not null collate C'],
  ['column event.salt', 'text collate C'],
  ['column event.seq', 'bigint not null'],
  ['column event.tool_call_id', 'text collate C'],
  ['column event.turn', 'bigint not null'],
  ['column event.type', 'text not null collate C'],
  ['column event.v', 'bigint not null'],
  ['column event.xid', 'xid8 not null'],
  ['column history.before', 'text collate C'],
  ['column history.digest', 'text not null collate C'],
  ['column history.message', 'text not null collate default'],
  ['column inbox.at', 'bigint not null'],
  ['column inbox.command', 'text not null collate default'],
  ['column inbox.key', 'text not null collate C'],
  ['column inbox.pos', 'bigint not null identity'],
  ['column inbox.run_id', 'text not null collate C'],
  ['column inbox.taken_seq', 'bigint'],
  ['column removal.at', 'bigint not null'],
  ['column removal.by', 'text not null collate default'],
  ['column removal.digest', 'text not null collate C'],
  ['column removal.hash', 'text not null collate C'],
  ['column removal.kind', 'text not null collate C'],
  ['column removal.pos', 'bigint not null'],
  ['column removal.reason', 'text collate default'],
  ['column removal.run_id', 'text not null collate C'],
  ['column removal.seq', 'bigint not null'],
  ['column run.ended_at', 'bigint'],
  ['column run.epoch', 'bigint not null'],
  ['column run.head_hash', 'text not null collate C'],
  ['column run.head_seq', 'bigint not null'],
  ['column run.history', 'text collate C'],
  ['column run.lease_holder', 'text collate C'],
  ['column run.lease_until', 'bigint'],
  ['column run.pos', 'bigint not null'],
  ['column run.run_id', 'text not null collate C'],
  ['column run.seal', 'text not null collate C'],
  ['column run.session_id', 'text collate C'],
  ['column run.session_place', 'bigint'],
  ['index event_at', 'CREATE INDEX event_at ON @.event USING btree (at)'],
  [
    'index event_call',
    'CREATE UNIQUE INDEX event_call ON @.event USING btree (tool_call_id, run_id, type, attempt) WHERE (tool_call_id IS NOT NULL)',
  ],
  ['index event_pkey', 'CREATE UNIQUE INDEX event_pkey ON @.event USING btree (pos)'],
  ['index event_seq', 'CREATE UNIQUE INDEX event_seq ON @.event USING btree (run_id, seq)'],
  ['index event_tail', 'CREATE UNIQUE INDEX event_tail ON @.event USING btree (xid, pos)'],
  [
    'index event_type',
    `CREATE INDEX event_type ON @.event USING btree (run_id, type, seq) WHERE (type <> ALL (ARRAY['model_call_started'::text, 'assistant_started'::text, 'assistant_text_delta'::text, 'assistant_reasoning_delta'::text, 'tool_input_delta'::text, 'tool_request_ready'::text, 'usage_updated'::text, 'assistant_message_finished'::text, 'tool_requests_collected'::text, 'tool_started'::text, 'tool_progress'::text, 'tool_result'::text, 'tool_results_injected'::text]))`,
  ],
  [
    'index history_before',
    'CREATE INDEX history_before ON @.history USING btree (before) WHERE (before IS NOT NULL)',
  ],
  ['index history_pkey', 'CREATE UNIQUE INDEX history_pkey ON @.history USING btree (digest)'],
  ['index inbox_key', 'CREATE UNIQUE INDEX inbox_key ON @.inbox USING btree (run_id, key)'],
  [
    'index inbox_open',
    'CREATE INDEX inbox_open ON @.inbox USING btree (run_id, pos) WHERE (taken_seq IS NULL)',
  ],
  ['index inbox_pkey', 'CREATE UNIQUE INDEX inbox_pkey ON @.inbox USING btree (pos)'],
  ['index removal_event', 'CREATE INDEX removal_event ON @.removal USING btree (run_id, seq)'],
  ['index removal_pkey', 'CREATE UNIQUE INDEX removal_pkey ON @.removal USING btree (pos)'],
  [
    'index run_history',
    'CREATE INDEX run_history ON @.run USING btree (history) WHERE (history IS NOT NULL)',
  ],
  ['index run_pkey', 'CREATE UNIQUE INDEX run_pkey ON @.run USING btree (run_id)'],
  ['index run_pos', 'CREATE UNIQUE INDEX run_pos ON @.run USING btree (pos)'],
  [
    'index run_session',
    'CREATE UNIQUE INDEX run_session ON @.run USING btree (session_id, session_place) WHERE (session_id IS NOT NULL)',
  ],
  ['reference event.event_run_id_fkey', 'FOREIGN KEY (run_id) REFERENCES @.run(run_id)'],
  ['reference history.history_before_fkey', 'FOREIGN KEY (before) REFERENCES @.history(digest)'],
  ['reference inbox.inbox_run_id_fkey', 'FOREIGN KEY (run_id) REFERENCES @.run(run_id)'],
  ['reference run.run_history_fkey', 'FOREIGN KEY (history) REFERENCES @.history(digest)'],
  [
    'trigger event.event_follows',
    'CREATE TRIGGER event_follows AFTER INSERT ON @.event REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION @.event_follows()',
  ],
  [
    'trigger event.event_is_kept',
    `CREATE TRIGGER event_is_kept BEFORE TRUNCATE ON @.event FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('events are never removed')`,
  ],
  [
    'trigger event.event_remains',
    `CREATE TRIGGER event_remains AFTER DELETE ON @.event REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.only_dropped('events are never removed')`,
  ],
  [
    'trigger event.event_stays',
    'CREATE TRIGGER event_stays BEFORE UPDATE ON @.event FOR EACH ROW EXECUTE FUNCTION @.event_stays()',
  ],
  [
    'trigger history.history_stays',
    `CREATE TRIGGER history_stays BEFORE UPDATE OR TRUNCATE ON @.history FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('messages are never changed')`,
  ],
  [
    'trigger inbox.inbox_is_kept',
    `CREATE TRIGGER inbox_is_kept BEFORE TRUNCATE ON @.inbox FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('keys of commands are known for ever')`,
  ],
  [
    'trigger inbox.inbox_opens',
    'CREATE TRIGGER inbox_opens BEFORE INSERT ON @.inbox FOR EACH ROW EXECUTE FUNCTION @.inbox_opens()',
  ],
  [
    'trigger inbox.inbox_remains',
    `CREATE TRIGGER inbox_remains AFTER DELETE ON @.inbox REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION @.only_dropped('keys of commands are known for ever')`,
  ],
  [
    'trigger inbox.inbox_stays',
    `CREATE TRIGGER inbox_stays BEFORE UPDATE ON @.inbox FOR EACH ROW WHEN (((new.pos IS DISTINCT FROM old.pos) OR (new.run_id IS DISTINCT FROM old.run_id) OR (new.key IS DISTINCT FROM old.key) OR (new.at IS DISTINCT FROM old.at) OR (new.taken_seq IS NULL) OR ((new.command <> old.command) AND (new.command <> ''::text)) OR ((old.taken_seq IS NOT NULL) AND (new.taken_seq <> old.taken_seq)))) EXECUTE FUNCTION @.refuse('a command is taken once, and never changed')`,
  ],
  [
    'trigger removal.removal_stays',
    `CREATE TRIGGER removal_stays BEFORE DELETE OR UPDATE OR TRUNCATE ON @.removal FOR EACH STATEMENT EXECUTE FUNCTION @.refuse('removals stay as they were written')`,
  ],
  [
    'trigger run.run_advances',
    `CREATE TRIGGER run_advances BEFORE UPDATE ON @.run FOR EACH ROW WHEN (((new.pos IS DISTINCT FROM old.pos) OR (new.run_id IS DISTINCT FROM old.run_id) OR (new.session_id IS DISTINCT FROM old.session_id) OR (new.session_place IS DISTINCT FROM old.session_place) OR (new.head_seq < old.head_seq) OR (new.epoch < old.epoch) OR ((new.head_seq = old.head_seq) AND (new.head_hash <> old.head_hash)) OR ((old.ended_at IS NOT NULL) AND (new.ended_at IS DISTINCT FROM old.ended_at)))) EXECUTE FUNCTION @.refuse('a run never goes back')`,
  ],
  [
    'trigger run.run_begins',
    'CREATE TRIGGER run_begins BEFORE INSERT ON @.run FOR EACH ROW EXECUTE FUNCTION @.run_begins()',
  ],
])

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
