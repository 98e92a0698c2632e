import { sql, type Kysely } from 'kysely'

/** The column of a run's status is called so. The table can be dropped at any time, and may be missing. */
export async function renameRunStatus(database: Kysely<unknown>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from information_schema.columns
    where table_schema = ${schema} and table_name = 'run_summary' and column_name = 'standing'`.execute(
    database,
  )
  if (rows.length === 0) return
  const place = `"${schema.replaceAll('"', '""')}"`
  for (const statement of [
    `drop index if exists ${place}.run_summary_standing`,
    `alter table ${place}.run_summary rename column standing to status`,
    `create index run_summary_status on ${place}.run_summary (status, pos, last_at)`,
  ])
    await sql.raw(statement).execute(database)
}
