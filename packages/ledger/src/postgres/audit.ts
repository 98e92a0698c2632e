import { createFault, type Fault } from '../format/event-row.ts'
import type { Connections } from './connections.ts'
import type { DatabasePlace } from './options.ts'
import { functions, indexes, placeInSchema, tables, triggers } from './schema.ts'

/** One column, index, reference, trigger or function of a schema, as the catalogue of the database has it. */
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
    rows.map(({ name, definition }) => {
      const [kind = ''] = name.split(' ')
      if (kind === 'function') return [name, definition.replaceAll(`${quotedSchema}.`, '@.')]
      const unnamed = definition.replace(
        /\b(ON|FUNCTION|REFERENCES) ("(?:[^"]|"")*"|[^\s".]+)\./g,
        (all, word: string, identifier: string) => (named(identifier) === schema ? `${word} @.` : all),
      )
      return [name, /index|reference|trigger/.test(kind) ? normalize(unnamed) : unnamed]
    }),
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
      return createFault(name, 'as format 1 has it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find(
    (name) => /^(trigger|rewrite) /.test(name) && !objectsAsMade.has(name),
  )
  return added === undefined ? undefined : createFault(added, 'none', 'one that was added')
}

/** The columns of a table, read from the text that makes it, with the index and the references that they bring. */
function listColumns(table: string, columns: string): readonly (readonly [string, string])[] {
  return columns.split(/,\s(?![^(]*\))/).flatMap((text) => {
    const column = text.trim()
    const [, name = '', type = '', collation] = /^(\w+) (\w+)( collate "C")?/.exec(column) ?? []
    const isKey = column.includes('primary key')
    const isNeeded = isKey || column.includes('not null')
    const collated = type === 'text' ? ` collate ${collation ? 'C' : 'default'}` : ''
    const identity = column.includes('as identity') ? ' identity' : ''
    const target = /references (@\.\w+ \(\w+\))/.exec(column)?.[1]
    const index = `create unique index ${table}_pkey on @.${table} (${name})`
    return [
      [`column ${table}.${name}`, `${type}${isNeeded ? ' not null' : ''}${identity}${collated}`] as const,
      ...(isKey ? [[`index ${table}_pkey`, normalize(index)] as const] : []),
      ...(target
        ? [
            [
              `reference ${table}.${table}_${name}_fkey`,
              normalize(`foreign key (${name}) references ${target}`),
            ] as const,
          ]
        : []),
    ]
  })
}

/** Normalises a definition, so that ours and that of Postgres compare: without brackets, casts and blanks. */
function normalize(definition: string): string {
  return definition
    .toLowerCase()
    .replaceAll(/ using btree|::text|<> all \(array\[| not in \(/g, (part) =>
      /all|not/.test(part) ? '<>all' : '',
    )
    .replaceAll(/[()[\]\s]/g, '')
}

const isOfRecord = (definition: string): boolean =>
  Object.keys(tables).some((table) => new RegExp(`on @\\.${table}\\b`).test(definition))

/** The objects that `schema.ts` makes, as the catalogue names them. A test compares the two. */
export const objectsAsMade: ReadonlyMap<string, string> = new Map([
  ...Object.keys(tables).map((name) => [`table ${name}`, 'logged'] as const),
  ...Object.entries(tables).flatMap(([table, columns]) => listColumns(table, columns)),
  ...Object.entries(functions).map(([name, source]) => [`function ${name}`, `\n${source}\n`] as const),
  ...indexes.filter(isOfRecord).map((index) => {
    const name = /index (\w+)/.exec(index)?.[1]
    return [`index ${name}`, normalize(`create ${index}`)] as const
  }),
  ...triggers.map(([name, on, then]) => {
    const table = /on @\.(\w+)/.exec(on)?.[1]
    return [
      `trigger ${table}.${name}`,
      normalize(`create trigger ${name} ${on} execute function @.${then}`),
    ] as const
  }),
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
      text: placeInSchema(`select count(*) as count from (${text}) as stray`, place.quotedSchema),
      values: [],
    })
    if (found && found.count > 0) return createFault(what, 0, found.count)
  }
  return undefined
}
