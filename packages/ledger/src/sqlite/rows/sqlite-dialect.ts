import type { ProjectionDialect } from '../../projection/tables/projection-database.ts'

/** How SQLite spells what has no one word. */
export const sqliteDialect: ProjectionDialect = {
  table: (name) => name,
  texts: (parameter) => `json_each(${parameter}) as item`,
  objects: (parameter) => `json_each(${parameter}) as item`,
  textsWithin: (item, field, alias) => `json_each(${item}.value, '$.${field}') as ${alias}`,
  blob: (parameter) => parameter,
  bytes: (hex) => `unhex(${hex})`,
  // Nobody else writes meanwhile.
  held: '',
  unindexed: (column) => `+${column}`,
}
