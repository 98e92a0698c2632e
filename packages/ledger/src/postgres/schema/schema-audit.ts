import { fault, type Fault } from '../../record/link-check.ts'
import type { Statement } from '../connection/connections.ts'
import type { DatabasePlace } from '../connection/database-place.ts'
import { schemaObjects } from './triggers.ts'

/** One column, index, constraint, trigger or function of the schema, as the catalogue tells it. */
export interface SchemaObject {
  readonly name: string
  readonly definition: string
}

const ledgerTables = `pg_class.relname in ('ledger', 'run', 'event', 'payload', 'inbox', 'content', 'content_use', 'removal', 'history', 'history_use', 'fact')`

/**
 * Reads the triggers and indexes that make a schema a ledger: without its triggers nothing is append-only, without
 * its indexes nothing is unique. Every version of Postgres returns the same rows for it.
 */
export function schemaStatement(schema: string): Statement {
  return {
    text: `with tables as (
      select pg_class.oid, relname, relpersistence, relrowsecurity from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
      where nspname = $1 and ${ledgerTables} and relkind in ('r', 'p')
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
      where nspname = $1 and proname in ('refuse', 'event_follows', 'payload_remains', 'event_remains', 'run_remains', 'inbox_remains',
        'content_remains', 'content_use_remains', 'run_returns', 'history_use_remains', 'run_ends_read', 'inbox_is_open',
        'fact_remains', 'segments_stay')
    ) as rules order by name collate "C"`,
    values: [schema],
  }
}

/** The rules of a schema as any ledger has them: `@` replaces the name of the schema. */
export function withoutSchema(
  { schema, quotedSchema }: Pick<DatabasePlace, 'schema' | 'quotedSchema'>,
  rows: readonly SchemaObject[],
): ReadonlyMap<string, string> {
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
 * The first rule that is not as the migrations make it. Columns and indexes that others add are left in peace; a
 * trigger or a rewriting rule that is added could change what is written.
 */
export function schemaFault(present: ReadonlyMap<string, string>): Fault | undefined {
  for (const [name, definition] of schemaObjects) {
    const found = present.get(name)
    if (found !== definition)
      return fault(name, 'as its migration makes it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find(
    (name) => /^(trigger|rewrite) /.test(name) && !schemaObjects.has(name),
  )
  return added === undefined ? undefined : fault(added, 'none', 'one that was added')
}
