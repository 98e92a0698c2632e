import { boundedText } from '../../../content/bounded-text.ts'
import type { Database } from './sqlite.ts'

const maxTables = 50
const maxCharacters = 4_000

/** The tables and views of a database with their columns, one a line, as in `orders(id INTEGER, total)`. */
export function tablesText(database: Database): string | undefined {
  try {
    const names = textsOf(database, namesQuery)
    const lines = names.slice(0, maxTables).map((name) => lineOf(database, name))
    if (names.length > maxTables) lines.push(`… and ${names.length - maxTables} more`)
    return lines.length === 0 ? 'none' : boundedText(lines.join('\n'), maxCharacters)
  } catch {
    return undefined
  }
}

const namesQuery = `SELECT name FROM sqlite_schema
  WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`
const columnsQuery = `SELECT trim(name || ' ' || type) FROM pragma_table_info(?) ORDER BY cid`

function lineOf(database: Database, name: string): string {
  try {
    return `${name}(${textsOf(database, columnsQuery, name).join(', ')})`
  } catch {
    // A view whose tables are gone has no columns.
    return `${name}(unreadable)`
  }
}

function textsOf(database: Database, sql: string, ...bindings: readonly string[]): readonly string[] {
  return Array.from(
    database
      .prepare(sql)
      .raw(true)
      .iterate(...bindings),
    ([text]) => String(text),
  )
}
