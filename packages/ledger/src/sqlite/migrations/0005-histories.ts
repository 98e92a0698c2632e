import { sql, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What the runs of a session begin with, each message kept once: pieces that come after each other. */
export const historyMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createTables(database)
    for (const trigger of triggers) await sql.raw(trigger).execute(database)
  },
}

async function createTables({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('history')
    .addColumn('name', 'text', (column) => column.primaryKey().notNull())
    .addColumn('before', 'text')
    .addColumn('digest', 'text', (column) => column.notNull())
    .addColumn('body', 'blob', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('history_use')
    .addColumn('pos', 'integer', (column) => column.primaryKey())
    .addColumn('name', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createIndex('history_before')
    .on('history')
    .column('before')
    .where(sql.ref('before'), 'is not', null)
    .execute()
  await schema.createIndex('history_use_name').on('history_use').column('name').execute()
}

function refusal(name: string, on: string, when: string, why: string): string {
  const condition = when === '' ? '' : ` when ${when}`
  return `create trigger ${name} before ${on} for each row${condition} begin select raise(abort, 'tallystick: ${why}'); end`
}

const triggers: readonly string[] = [
  refusal(
    'history_follows',
    'insert on history',
    'exists (select 1 from history where name = new.name) ' +
      'or (new.before is not null and not exists (select 1 from history where name = new.before))',
    'a piece of history stands once, behind one that is there',
  ),
  refusal('history_stays', 'update on history', '', 'histories are never changed'),
  refusal(
    'history_remains',
    'delete on history',
    'exists (select 1 from history_use where name = old.name) ' +
      'or exists (select 1 from history where before = old.name)',
    'a history stays as long as a run begins with it',
  ),
  refusal(
    'history_use_follows',
    'insert on history_use',
    'not exists (select 1 from history where name = new.name)',
    'a run begins with a history that is there',
  ),
  refusal('history_use_stays', 'update on history_use', '', 'uses of histories are never changed'),
  refusal(
    'history_use_remains',
    'delete on history_use',
    'exists (select 1 from payload where pos = old.pos)',
    'a use of a history goes only with the payload',
  ),
]
