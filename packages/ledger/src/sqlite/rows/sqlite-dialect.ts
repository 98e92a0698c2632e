import { rareType } from '../migrations/0010-shared-rows.ts'
import type { ProjectionDialect } from '../../projection/tables/projection-database.ts'

/** The SQL of SQLite. */
export const sqliteDialect: ProjectionDialect = {
  table: (name) => name,
  // By its name, since without figures about a file SQLite would take the wrong index.
  rareEvents: `(select * from event indexed by event_rare_type where ${rareType}) as event`,
  texts: (parameter) => `json_each(${parameter}) as item`,
  objects: (parameter) => `json_each(${parameter}) as item`,
  textsWithin: (item, field, alias) => `json_each(${item}.value, '$.${field}') as ${alias}`,
  blob: (parameter) => parameter,
  bytes: (hex) => `unhex(${hex})`,
  // No other connection writes meanwhile.
  held: '',
  unindexed: (column) => `+${column}`,
}
