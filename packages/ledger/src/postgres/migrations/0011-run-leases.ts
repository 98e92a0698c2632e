import { sql, type Kysely } from 'kysely'

/** Who drives a run, and until when (in ms since 1970), in the row of the run. Nothing of the record depends on it. */
export async function addRunLeases(database: Kysely<unknown>, schema: string): Promise<void> {
  const place = `"${schema.replaceAll('"', '""')}"`
  for (const statement of [
    `alter table ${place}.run add column lease_holder text, add column lease_until int8`,
    `drop table ${place}.lease`,
  ])
    await sql.raw(statement).execute(database)
}
