import { sql, type CreateTableBuilder, type Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** What follows from the events, and can be dropped at any time: snapshots, and projections of runs and totals. */
export const projectionMigration: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await createSnapshots(database)
    await createRuns(database)
    await createTotals(database)
    const rows = sql`('runs', '', 0, ''), ('snapshots', '', 0, '')`
    await sql`insert into projection (name, version, revision, cursor) values ${rows}`.execute(database)
  },
}

async function createSnapshots({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('snapshot')
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('reducer', 'text', (column) => column.notNull())
    .addColumn('seq', 'integer', (column) => column.notNull())
    .addColumn('state', 'blob', (column) => column.notNull())
    .addColumn('head_hash', 'blob', (column) => column.notNull())
    .addColumn('seal', 'blob', (column) => column.notNull())
    .addPrimaryKeyConstraint('snapshot_key', ['run_id', 'reducer', 'seq'])
    .modifyEnd(sql`strict`)
    .execute()
}

async function createRuns({ schema }: Kysely<unknown>): Promise<void> {
  await schema
    .createTable('projection')
    .addColumn('name', 'text', (column) => column.primaryKey().notNull())
    .addColumn('version', 'text', (column) => column.notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('cursor', 'text', (column) => column.notNull())
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema
    .createTable('run_summary')
    .addColumn('pos', 'integer', (column) => column.primaryKey())
    .addColumn('run_id', 'text', (column) => column.unique().notNull())
    .addColumn('seq', 'integer', (column) => column.notNull())
    .addColumn('head_hash', 'blob', (column) => column.notNull())
    .addColumn('standing', 'text', (column) => column.notNull())
    .addColumn('session_id', 'text')
    .addColumn('started_at', 'integer', (column) => column.notNull())
    .addColumn('last_at', 'integer', (column) => column.notNull())
    .addColumn('shares', 'text', (column) => column.notNull())
    .addColumn('summary', 'text')
    .addColumn('notes', 'text')
    .modifyEnd(sql`strict`)
    .execute()
  await schema
    .createTable('run_agent')
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('pos', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('run_agent_key', ['agent', 'pos'])
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema.createIndex('run_agent_pos').on('run_agent').column('pos').execute()
  await createRunIndexes(schema)
}

async function createRunIndexes(schema: Kysely<unknown>['schema']): Promise<void> {
  await schema
    .createIndex('run_summary_standing')
    .on('run_summary')
    .columns(['standing', 'pos', 'last_at'])
    .execute()
  await schema.createIndex('run_summary_last').on('run_summary').column('last_at').execute()
  await schema
    .createIndex('run_summary_session')
    .on('run_summary')
    .columns(['session_id', 'pos'])
    .where(sql.ref('session_id'), 'is not', null)
    .execute()
  await schema
    .createIndex('run_summary_stale')
    .on('run_summary')
    .column('pos')
    .where(sql.ref('summary'), 'is', null)
    .execute()
}

async function createTotals({ schema }: Kysely<unknown>): Promise<void> {
  const session = schema
    .createTable('session_summary')
    .addColumn('session_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('runs', 'integer', (column) => column.notNull())
    .addColumn('started_at', 'integer', (column) => column.notNull())
    .addColumn('last_at', 'integer', (column) => column.notNull())
    .addColumn('turns', 'integer', (column) => column.notNull())
    .addColumn('tool_calls', 'integer', (column) => column.notNull())
  await withAmounts(session)
    .modifyEnd(sql`strict`)
    .execute()
  const spending = schema
    .createTable('spending')
    .addColumn('hour', 'integer', (column) => column.notNull())
    .addColumn('agent', 'text', (column) => column.notNull())
    .addColumn('provider', 'text', (column) => column.notNull())
    .addColumn('api', 'text', (column) => column.notNull())
    .addColumn('model_id', 'text', (column) => column.notNull())
    .addColumn('calls', 'integer', (column) => column.notNull())
  await withAmounts(spending)
    .addPrimaryKeyConstraint('spending_key', ['hour', 'agent', 'provider', 'api', 'model_id'])
    .modifyEnd(sql`strict, without rowid`)
    .execute()
  await schema
    .createIndex('session_summary_last')
    .on('session_summary')
    .columns(['last_at', 'cost_nano'])
    .execute()
}

const amounts = [
  'unpriced',
  'cost_nano',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'cache_write_long_tokens',
  'web_searches',
  'cache_write_long_told',
  'web_searches_told',
  'input_told',
  'output_told',
  'cache_read_told',
  'cache_write_told',
  'reasoning_told',
]

function withAmounts<Table extends string, Column extends string>(
  table: CreateTableBuilder<Table, Column>,
): CreateTableBuilder<Table, string> {
  return amounts.reduce<CreateTableBuilder<Table, string>>(
    (built, name) => built.addColumn(name, 'integer', (column) => column.notNull()),
    table as unknown as CreateTableBuilder<Table, string>,
  )
}
