/** White space and comments, as SQLite skips them. */
const skipped = String.raw`(?:\s|--[^\n]*(?:\n|$)|/\*[\s\S]*?(?:\*/|$))*`
const readingStatement = new RegExp(
  `^${skipped}(?:EXPLAIN\\b${skipped}(?:QUERY\\b${skipped}PLAN\\b${skipped})?)?(?:SELECT|WITH|VALUES)\\b`,
  'i',
)

/** What a statement that may change something, or is none, is refused with. */
export const onlyReads: string =
  'Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, or EXPLAIN QUERY PLAN of these. ' +
  'Nothing was run.'

/**
 * Why a text is refused unseen by SQLite, if it is. Some PRAGMAs take effect while they are compiled, so what is no
 * reading statement by its first word must not even be prepared; whether it reads only, SQLite says then.
 */
export function refusalOf(sql: string): string | undefined {
  if (sql.includes('\0')) return `${onlyReads} The text holds a NUL character.`
  return readingStatement.test(sql) ? undefined : onlyReads
}
