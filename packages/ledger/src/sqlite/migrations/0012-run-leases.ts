import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Who drives a run, and until when (in ms since 1970), in the row of the run. Nothing of the record depends on it. */
export const runLeaseMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await sql.raw(statement).execute(database)
  },
}

const statements: readonly string[] = [
  'alter table run add column lease_holder text',
  'alter table run add column lease_until integer',
  'drop table lease',
]
