import { sql, type Kysely } from 'kysely'

/** Which process resumes a run that no process drives. Nothing of the record depends on it. */
export async function addLeases(database: Kysely<unknown>, schema: string): Promise<void> {
  await database
    .withSchema(schema)
    .schema.createTable('lease')
    .addColumn('run_id', sql`text collate "C"`, (column) => column.primaryKey())
    .addColumn('holder', 'text', (column) => column.notNull())
    .addColumn('epoch', 'int8', (column) => column.notNull())
    .addColumn('until', 'int8', (column) => column.notNull())
    .execute()
}
