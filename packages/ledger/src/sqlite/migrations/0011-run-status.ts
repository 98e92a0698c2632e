import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** The column of a run's status is called so. The table can be dropped at any time, and may be missing. */
export const runStatusMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    const columns = sql`select 1 from pragma_table_info('run_summary') where name = 'standing'`
    if ((await columns.execute(database)).rows.length === 0) return
    for (const statement of statements) await sql.raw(statement).execute(database)
  },
}

const statements: readonly string[] = [
  'drop index if exists run_summary_standing',
  'alter table run_summary rename column standing to status',
  'create index run_summary_status on run_summary (status, pos, last_at)',
]
