import { fault, type Fault } from '../format/event-row.ts'
import type { Connections } from './connections.ts'
import type { DatabasePlace } from './options.ts'
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

/** Reads the objects that make a schema a ledger. `@` replaces its name. */
export async function listSchemaObjects(
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
  const present = await listSchemaObjects(connections, place)
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

/** The columns of a table, read from the text that makes it. */
function listColumns(table: string, columns: string): readonly (readonly [string, string])[] {
  return columns.split(/,\s(?![^(]*\))/).map((text) => {
    const column = text.trim()
    const [, name = '', type = '', collation] = /^(\w+) (\w+)( collate "C")?/.exec(column) ?? []
    const isNeeded = /not null|primary key/.test(column)
    const collated = type === 'text' ? ` collate ${collation ? 'C' : 'default'}` : ''
    const identity = column.includes('as identity') ? ' identity' : ''
    return [`column ${table}.${name}`, `${type}${isNeeded ? ' not null' : ''}${identity}${collated}`]
  })
}

/** The objects that `schema.ts` makes, as the catalogue names them. A test compares the two. */
export const objectsAsMade: ReadonlyMap<string, string> = new Map([
  ...Object.keys(tables).map((name) => [`table ${name}`, 'logged'] as const),
  ...Object.entries(tables).flatMap(([table, columns]) => listColumns(table, columns)),
  ...Object.entries(functions).map(([name, source]) => [`function ${name}`, `\n${source}\n`] as const),
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

/** Rows that should not exist, by the name of their fault. */
const strays: readonly (readonly [what: string, text: string])[] = [
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

/** The first fault of a schema and of the order of its tail. */
export async function findDatabaseFault(
  connections: Connections,
  place: DatabasePlace,
): Promise<Fault | undefined> {
  const changed = await findSchemaFault(connections, place)
  if (changed) return changed
  for (const [what, text] of strays) {
    const [found] = await connections.patiently<{ readonly count: number }>({
      text: inSchema(`select count(*) as count from (${text}) as stray`, place.quotedSchema),
      values: [],
    })
    if (found && found.count > 0) return fault(what, 0, found.count)
  }
  return undefined
}
