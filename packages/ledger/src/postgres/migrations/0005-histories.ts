import { sql, type Compilable, type Kysely, type RawBuilder } from 'kysely'

/** What the runs of a session begin with, each message kept once: pieces that come after each other. */
export async function addHistories(database: Kysely<unknown>, schema: string): Promise<void> {
  const builder = database.withSchema(schema)
  const built = [...tables(builder), ...indexes(builder)].map((statement) => statement.compile().sql)
  await sql.raw([...built, ...triggerStatements(schema)].join(';\n')).execute(database)
}

const bytewise: RawBuilder<string> = sql`text collate "C"`

function tables({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema
      .createTable('history')
      .addColumn('name', bytewise, (column) => column.primaryKey())
      .addColumn('before', bytewise)
      .addColumn('digest', bytewise, (column) => column.notNull())
      .addColumn('body', 'bytea', (column) => column.notNull()),
    schema
      .createTable('history_use')
      .addColumn('pos', 'int8', (column) => column.primaryKey())
      .addColumn('name', bytewise, (column) => column.notNull()),
  ]
}

function indexes({ schema }: Kysely<unknown>): readonly Compilable[] {
  return [
    schema.createIndex('history_before').on('history').column('before'),
    schema.createIndex('history_use_name').on('history_use').column('name'),
  ]
}

/** What is referred to cannot go, and nothing refers to what has gone: appends and removals may be under way at once. */
const references = [
  ['history', 'before'],
  ['history_use', 'name'],
] as const

const refusals = [
  ['history_stays', 'history', 'histories are never changed'],
  ['history_use_stays', 'history_use', 'uses of histories are never changed'],
] as const

function triggerStatements(schema: string): readonly string[] {
  const place = `"${schema.replaceAll('"', '""')}"`
  return [
    ...references.map(
      ([table, column]) =>
        `alter table ${place}.${table} add constraint ${table}_${column}_there foreign key (${column}) references ${place}.history (name)`,
    ),
    ...refusals.flatMap(([trigger, table, why]) => [
      `create trigger ${trigger} before update or truncate on ${place}.${table} for each statement execute function ${place}.refuse('${why}')`,
      `alter table ${place}.${table} enable always trigger ${trigger}`,
    ]),
    `create function ${place}.history_use_remains() returns trigger language plpgsql as $$
begin
  if exists (select from gone join ${place}.payload using (pos)) then
    raise exception 'tallystick: a use of a history goes only with the payload' using errcode = 'TL001';
  end if;
  return null;
end
$$`,
    `create trigger history_use_remains after delete on ${place}.history_use referencing old table as gone
      for each statement execute function ${place}.history_use_remains()`,
    `alter table ${place}.history_use enable always trigger history_use_remains`,
  ]
}
