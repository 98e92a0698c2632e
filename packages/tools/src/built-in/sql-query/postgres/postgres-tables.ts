import type { ClientBase } from 'pg'
import { boundedText } from '../../../content/bounded-text.ts'

const maxTables = 50
const maxCharacters = 4_000

/** The tables and views that are found without a schema, as many as are shown and one more. */
const query = `
  select c.relname || '(' || coalesce((
    select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  ), '') || ')'
  from pg_class c
  where c.relkind in ('r', 'v', 'm', 'f', 'p') and pg_table_is_visible(c.oid) and has_table_privilege(c.oid, 'select')
    and c.relnamespace not in (select oid from pg_namespace where nspname in ('pg_catalog', 'information_schema'))
  order by c.relname limit ${maxTables + 1}`

/** Tables and views with their columns, one a line, as in `orders(id integer, total numeric)`. */
export async function postgresTables(client: ClientBase): Promise<string | undefined> {
  try {
    await client.query('rollback; begin transaction read only')
    const { rows } = await client.query<[string]>({ text: query, rowMode: 'array' })
    const lines = rows.slice(0, maxTables).map(([line]) => line)
    if (rows.length > maxTables) lines.push('… and more')
    return lines.length === 0 ? 'none' : boundedText(lines.join('\n'), maxCharacters)
  } catch {
    return undefined
  }
}
