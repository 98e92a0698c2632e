import { projectionVersion } from '../tables/projection-version.ts'
import type { ChangePart, ProjectionDatabase, ProjectionDialect } from '../tables/projection-database.ts'

/** How many rows are dropped at once, so that a writer who comes meanwhile hardly waits. */
const rowsPerChange = 512

/** The version of projections that are being dropped: no process reads or extends them. */
const dropping = 'dropping'

/** The tables of projections, each with what names a row of it. */
const tables: readonly (readonly [name: string, key: string])[] = [
  ['run_summary', 'run_id'],
  ['session_summary', 'session_id'],
  ['spending', 'hour, agent, provider, api, model_id'],
]

/**
 * Drops every projection, in short transactions, and leaves the tables as in a new ledger. No process reads them from
 * the first transaction on; concurrent calls help.
 */
export async function dropProjections(database: ProjectionDatabase): Promise<void> {
  const { dialect } = database
  await database.change([markPart(dialect)], [])
  await database.change([versionPart(dialect, dropping)], [])
  for (const [name, key] of tables) {
    while (await database.change([rowsPart(dialect, name, key)], [])) {
      // As long as there are rows.
    }
  }
  await database.change([versionPart(dialect, projectionVersion, dropping)], [])
}

/** Drops every snapshot, in short transactions. */
export async function dropSnapshots(database: ProjectionDatabase): Promise<void> {
  const { table } = database.dialect
  const some: ChangePart = {
    name: 'rows',
    text: () => `delete from ${table('snapshot')} where (run_id, reducer, seq) in (
      select run_id, reducer, seq from ${table('snapshot')} limit ${rowsPerChange})`,
  }
  while (await database.change([some], [])) {
    // As long as there are rows.
  }
}

/** The row by which snapshots notice that something was forgotten meanwhile. */
function markPart({ table }: ProjectionDialect): ChangePart {
  return {
    name: 'mark',
    text: () => `insert into ${table('projection')} (name, version, revision, cursor) values ('snapshots', '', 0, '')
      on conflict (name) do nothing`,
  }
}

function versionPart({ table }: ProjectionDialect, version: string, from?: string): ChangePart {
  const condition = from === undefined ? '' : ` where projection.version = '${from}'`
  return {
    name: 'version',
    text: () => `insert into ${table('projection')} as projection (name, version, revision, cursor)
      values ('runs', '${version}', 1, '') on conflict (name) do update set
        version = excluded.version, revision = projection.revision + 1, cursor = ''${condition}`,
  }
}

/** Another process may have finished dropping, and may be adding rows already: those stay. */
function rowsPart({ table }: ProjectionDialect, name: string, key: string): ChangePart {
  const named = key.includes(',') ? `(${key})` : key
  return {
    name: 'rows',
    text: () => `delete from ${table(name)} where ${named} in (
      select ${key} from ${table(name)} limit ${rowsPerChange}
    ) and exists (select 1 from ${table('projection')} as projection where name = 'runs' and version = '${dropping}')`,
  }
}
