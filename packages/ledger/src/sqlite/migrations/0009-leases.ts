import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Which process resumes a run that no process drives. Nothing of the record depends on it. */
export const leaseMigration: Migration = {
  async up({ schema }: Kysely<unknown>): Promise<void> {
    await schema
      .createTable('lease')
      .addColumn('run_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('epoch', 'integer', (column) => column.notNull())
      .addColumn('until', 'integer', (column) => column.notNull())
      .modifyEnd(sql`strict, without rowid`)
      .execute()
  },
}
