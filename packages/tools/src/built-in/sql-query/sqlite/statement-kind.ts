/** The refusal of a text that may change something, or that is no statement. */
export const onlyReads: string =
  'Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, or EXPLAIN QUERY PLAN of these. ' +
  'Nothing was run.'

const readingWords: ReadonlySet<string> = new Set(['SELECT', 'WITH', 'VALUES'])

/**
 * Why a text is refused unseen by SQLite, if it is. Some PRAGMAs take effect while they are compiled, so what is no
 * reading statement by its first word must not even be prepared; whether it reads only, SQLite says then.
 *
 * Looks at each character once, since the text is a model's: a pattern over white space and comments would go back.
 */
export function refusalOf(sql: string): string | undefined {
  if (sql.includes('\0')) return `${onlyReads} The text holds a NUL character.`
  const words = wordsOf(sql)
  let word = words.next().value
  if (word === 'EXPLAIN') word = words.next().value
  if (word === 'QUERY' && words.next().value === 'PLAN') word = words.next().value
  return word !== undefined && readingWords.has(word) ? undefined : onlyReads
}

/** The words that a statement begins with, in upper case, up to the first character that belongs to none. */
function* wordsOf(sql: string): Generator<string, undefined> {
  let place = skipped(sql, 0)
  while (isWordCharacter(sql, place)) {
    const start = place
    while (isWordCharacter(sql, place)) place++
    yield sql.slice(start, place).toUpperCase()
    place = skipped(sql, place)
  }
  return undefined
}

/** The index after white space and comments, as SQLite skips them: a comment that is not ended goes to the end. */
function skipped(sql: string, from: number): number {
  let place = from
  for (;;) {
    if (isWhiteSpace(sql, place)) place++
    else if (sql.startsWith('--', place)) place = behind(sql, '\n', place + 2)
    else if (sql.startsWith('/*', place)) place = behind(sql, '*/', place + 2)
    else return place
  }
}

function behind(sql: string, end: string, from: number): number {
  const place = sql.indexOf(end, from)
  return place === -1 ? sql.length : place + end.length
}

function isWhiteSpace(sql: string, place: number): boolean {
  const character = sql[place]
  return character !== undefined && ' \t\n\f\r'.includes(character)
}

/** A letter, a digit, `_`, `$`, or any character beyond ASCII, which SQLite takes for a letter. */
function isWordCharacter(sql: string, place: number): boolean {
  const character = sql[place]
  return character !== undefined && (character > '\u007f' || /^[\w$]$/.test(character))
}
