import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError, joinText, type Tool } from '@tallystick/core'
import type { ToolSignal } from '@tallystick/core/vocabulary'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { afterAll, describe, expect, it } from 'vitest'
import { effort } from '../../../../scripts/testing/effort.ts'
import { ShownRows, type StatementReply, toAnswer } from '../../src/built-in/sql-query/answer.ts'
import { runStatement } from '../../src/built-in/sql-query/sqlite-statement.ts'
import { callContext, endingOf, toolRun } from '../one-call.ts'
import { createShopDatabase } from './shop-database.ts'

const shop = createShopDatabase()
const { folder, path } = shop
afterAll(() => shop.remove())

const tool = sqlQuery({ path })

async function answer(sql: string, parameters?: unknown, chosen: Tool = tool): Promise<unknown> {
  const { outcome, text } = await endingOf(chosen, {
    sql,
    ...(parameters !== undefined && { parameters }),
  } as never)
  return outcome === 'success' ? JSON.parse(text) : `${outcome}: ${text}`
}

/** How a statement ends: in a process of its own in a thorough run, as the tool runs it, and in this one in a quick run. */
const ending: (sql: string) => Promise<unknown> = effort({
  quick: async (sql: string): Promise<unknown> => {
    const request = {
      path,
      sql,
      parameters: [],
      maxRows: 1,
      maxBytes: 500,
      timeoutMs: 1_000,
      lockTimeoutMs: 1_000,
    }
    const ended = runStatement(request, () => {})
    return ended.kind === 'failed' ? `failed: ${ended.message}` : ended
  },
  thorough: answer,
})

describe('sqlQuery', () => {
  it('answers columns and rows', async () => {
    expect(await answer('SELECT id, name FROM items ORDER BY id')).toEqual({
      columns: ['id', 'name'],
      rows: [
        [1, 'tent'],
        [2, 'stöve'],
        [3, 'lamp'],
      ],
    })
  })

  it('answers no rows with the columns that there would be', async () => {
    expect(await answer('SELECT id AS "the id", name, id FROM items WHERE 0')).toEqual({
      columns: ['the id', 'name', 'id'],
      rows: [],
    })
  })

  it('shows what JSON has no value for: blobs, large integers, infinities', async () => {
    expect(await answer('SELECT photo, price FROM items ORDER BY id')).toMatchObject({
      rows: [
        [{ base64: 'AP8Q', bytes: 3 }, 189.5],
        [null, null],
        [null, 'Infinity'],
      ],
    })
    expect(await answer('SELECT amount FROM ledger')).toMatchObject({
      rows: [[9007199254740991], ['9007199254740993'], ['-9223372036854775808']],
    })
  })

  it.each<[string, string, unknown, unknown[]]>([
    ['by place', 'SELECT ? + 1, ?, ?', [41, 'a', null], [42, 'a', null]],
    ['by name, with any prefix or none', 'SELECT :a, @b, $c', { a: 1, '@b': 2, $c: 3 }, [1, 2, 3]],
    ['whole numbers as integers', 'SELECT 7 / ?, typeof(?)', [2, 2], [3, 'integer']],
    ['other numbers as reals', 'SELECT 7 / ?, typeof(?)', [2.5, 2.5], [2.8, 'real']],
    ['booleans as 1 and 0', 'SELECT ?, ?', [true, false], [1, 0]],
    ['text that is SQL as text', 'SELECT ?', ["'; DROP TABLE items; --"], ["'; DROP TABLE items; --"]],
  ])('takes parameters %s', async (_how, sql, parameters, row) => {
    expect(await answer(sql, parameters)).toMatchObject({ rows: [row] })
  })

  it.each<[string, string, unknown, RegExp]>([
    [
      'too few parameters',
      'SELECT ?, ?',
      [1],
      /^failed: SQLite says: Too few parameter values were provided\.$/,
    ],
    [
      'too many parameters',
      'SELECT ?',
      [1, 2],
      /^failed: SQLite says: Too many parameter values were provided\.$/,
    ],
    ['a missing name', 'SELECT :a', { b: 1 }, /^failed: SQLite says: Missing named parameter "a"\.$/],
    [
      'parameters of another kind',
      'SELECT ?',
      'x',
      /^invalid_input: .*- parameters: expected array or object, received string$/s,
    ],
    ['a parameter that is a list', 'SELECT ?', [[1]], /^invalid_input: .*parameters/s],
    ['no statement', '-- nothing', undefined, /^failed: Only one statement that reads can be run/],
    [
      'two statements',
      'SELECT 1; SELECT 2',
      undefined,
      /^failed: SQLite says: The supplied SQL string contains more than one statement\.$/,
    ],
  ])('explains %s', async (_what, sql, parameters, text) => {
    expect(await answer(sql, parameters)).toMatch(text)
  })

  it('offers the tables and columns where a statement does not fit them', async () => {
    expect(await answer('SELECT nam FROM items')).toBe(
      'failed: SQLite says: no such column: nam.\nThe tables and views are:\n' +
        'broken(unreadable)\nitems(id INTEGER, name TEXT, price REAL, photo BLOB)\nledger(amount INTEGER)\n' +
        'many(n INTEGER)\nnames(name TEXT)',
    )
    expect(await answer('SELEC 1')).toMatch(/^failed: Only one statement that reads can be run/)
    expect(await answer('SELECT 1 FORM items')).toMatch(/syntax error\.\nThe tables and views are:\nbroken/)
  })

  it('says when the file cannot be opened, also when it is not a database', async () => {
    const missing = sqlQuery({ path: join(folder, 'missing.db') })
    expect(await answer('SELECT 1', [], missing)).toMatch(
      /^failed: The database cannot be opened: .*unable to open/,
    )
    expect(existsSync(join(folder, 'missing.db'))).toBe(false)
    writeFileSync(
      join(folder, 'text.db'),
      'no database at all, only text that is long enough to be read as a header',
    )
    expect(await answer('SELECT * FROM a', [], sqlQuery({ path: join(folder, 'text.db') }))).toMatch(
      /^failed: (SQLite says|The database cannot be opened): file is not a database/,
    )
  })
})

describe('what is shown', () => {
  it('is at most maxRows rows, with a note when there are more', async () => {
    const ten = sqlQuery({ path, maxRows: 10 })
    const tenRows = Array.from({ length: 10 }, (_, index) => [index + 1])
    expect(await answer('SELECT n FROM many LIMIT 10', [], ten)).toEqual({ columns: ['n'], rows: tenRows })
    expect(await answer('SELECT n FROM many', [], ten)).toEqual({
      columns: ['n'],
      rows: tenRows,
      note: 'Only the first 10 rows are shown, there are more. Aggregate, filter, or page with ORDER BY, LIMIT and OFFSET.',
    })
  })

  it('is at most maxBytes bytes of whole rows, with a note', async () => {
    const { text } = await endingOf(sqlQuery({ path, maxBytes: 500 }), {
      sql: "SELECT n, 'ü' || hex(zeroblob(20)) FROM many",
    })
    const { rows, note } = JSON.parse(text) as { rows: unknown[]; note: string }
    expect(rows.length).toBeGreaterThan(5)
    expect(Buffer.byteLength(JSON.stringify(rows))).toBeLessThanOrEqual(500)
    expect(note).toBe(
      `Only the first ${rows.length} rows are shown: more would be over 500 bytes. Select fewer columns or rows, or parts of long values with substr().`,
    )
  })

  it('is not a row where the first alone is too large', async () => {
    for (const value of ['zeroblob(60000)', 'hex(zeroblob(30000))']) {
      expect(await answer(`SELECT ${value} AS v`)).toMatchObject({
        columns: ['v'],
        rows: [],
        note: expect.stringContaining(
          'No row is shown: the first alone would be over 50000 bytes.',
        ) as string,
      })
    }
  })
})

describe('the database', () => {
  it.each([
    'INSERT INTO many VALUES (0)',
    'DELETE FROM many',
    'WITH a AS (SELECT 1) DELETE FROM many',
    'WITH a(x) AS (SELECT 7) INSERT INTO many SELECT x FROM a RETURNING n',
    'CREATE TABLE t (a)',
    'CREATE TEMP TABLE t (a)',
    'DROP TABLE many',
    'PRAGMA user_version = 7',
    'PRAGMA journal_mode = WAL',
    'PRAGMA query_only = OFF',
    'EXPLAIN PRAGMA user_version = 7',
    '/* SELECT */ PRAGMA user_version = 7',
    '-- SELECT 1\nDELETE FROM many',
    "ATTACH DATABASE 'other.db' AS other",
    "VACUUM INTO 'copy.db'",
    'REINDEX',
    'BEGIN IMMEDIATE',
    'SELECT 1; DELETE FROM many',
    'SELECT 1; PRAGMA user_version = 7',
    "SELECT load_extension('evil')",
    "SELECT fts3_tokenizer('simple', x'0000000000000000')",
    "SELECT writefile('copy.db', 'x')",
    "SELECT readfile('shop.db')",
    'SELECT * FROM pragma_user_version(7)',
    ';DELETE FROM many',
  ])('is not changed by %s', async (sql) => {
    const hash = (): string => createHash('sha256').update(readFileSync(path)).digest('hex')
    const [before, files] = [hash(), readdirSync(folder).sort()]
    expect(await ending(sql)).toMatch(/^failed: (Only one statement that reads|SQLite says: )/)
    expect(hash()).toBe(before)
    expect(readdirSync(folder).sort()).toEqual(files)
  })

  it('is not even tried to be changed by what SQLite says may change it', async () => {
    const sql = 'WITH a(x) AS (SELECT 7) INSERT INTO many SELECT x FROM a RETURNING n'
    expect(await answer(sql)).toMatch(/^failed: Only one statement that reads can be run/)
  })

  it.each([
    ['SELECT 1', 1],
    ['  -- a comment\n /* and\n another */ select 1', 1],
    ['VALUES (1)', 1],
    ['WITH a(x) AS (SELECT 1) SELECT x FROM a', 1],
    ['SELECT 1; -- the end', 1],
    ["SELECT 'DELETE FROM many'", 'DELETE FROM many'],
    ["SELECT count(*) FROM pragma_table_info('items')", 4],
  ])('is read by %s', async (sql, value) => {
    expect(await answer(sql)).toMatchObject({ rows: [[value]] })
  })

  it.each([
    ['241 characters of comments', `${'/**/'.repeat(60)}x`],
    ['comments as long as a statement may be', `${'/* -- */'.repeat(2_400)}x`],
    ['lines of comments', `${'--\n'.repeat(6_000)}x`],
    ['a comment that does not end', '/* SELECT 1'],
    ['a word that begins like one that reads', 'SELECTED'],
    ['a word that continues beyond ASCII', 'SELECTé 1'],
    ['words of an explanation in another order', 'EXPLAIN PLAN SELECT 1'],
    ['a NUL character', 'SELECT 1\0; DROP TABLE many'],
  ])('is not read by %s, which is refused at once', async (_what, sql) => {
    expect(await ending(sql)).toMatch(/^failed: Only one statement that reads can be run/)
  })

  it('is read after as many comments as fit', async () => {
    expect(await answer(`${'/**/--\n'.repeat(2_000)}explain/**/query--\nplan select 1`)).toMatchObject({
      columns: ['id', 'parent', 'notused', 'detail'],
    })
  })

  it('tells how it would answer', async () => {
    expect(await answer('EXPLAIN QUERY PLAN SELECT * FROM items WHERE id = 1')).toMatchObject({
      columns: ['id', 'parent', 'notused', 'detail'],
      rows: [[expect.any(Number), 0, expect.any(Number), 'SEARCH items USING INTEGER PRIMARY KEY (rowid=?)']],
    })
  })
})

describe('defining it', () => {
  it.each<[string, object, RegExp]>([
    ['no path', { path: '' }, /sqlQuery: path is an empty text/],
    ['a database in memory', { path: ':memory:' }, /has no database/],
    ['a URI', { path: 'file:shop.db?mode=rwc' }, /has no database/],
    ['no rows', { path, maxRows: 0 }, /sqlQuery: maxRows is 0; expected a whole number of at least 1/],
    ['no time for locks', { path, lockTimeoutMs: 0 }, /lockTimeoutMs is 0/],
    [
      'the name of the ledger',
      { path, busyTimeoutMs: 5 },
      /busyTimeoutMs is not an option. Did you mean lockTimeoutMs\?/,
    ],
    [
      'a wait in Postgres that its statement would not live to see',
      { connectionString: 'postgres://localhost/x', timeoutMs: 500, lockTimeoutMs: 501 },
      /lockTimeoutMs says \(501\): Postgres stops the whole statement after its timeoutMs \(500\)/,
    ],
  ])('refuses %s', (_what, options, message) => {
    expect(() => sqlQuery(options as never)).toThrow(ConfigurationError)
    expect(() => sqlQuery(options as never)).toThrow(message)
  })

  it('is a read tool whose description says how to find the tables', async () => {
    expect(tool).toMatchObject({ name: 'sql_query', effect: 'read', recovery: 'rerun' })
    expect(tool.description).toContain('SELECT name, sql FROM sqlite_schema')
    expect(tool.description).not.toContain('shop.db')
    expect(await tool.check({ sql: 'SELECT 1', params: [] }, callContext)).toMatchObject({
      outcome: 'invalid_input',
      text: expect.stringContaining('- params: unknown key; the keys are sql, parameters') as string,
    })
  })

  const built = new URL('../../dist/built-in/sql-query/sql-query.js', import.meta.url)
  const missing = existsSync(built) ? '' : ' (skipped: the package is not built, as `pnpm build` does)'
  // Runs where the package was built; the sources themselves run in all the tests above.
  it.skipIf(missing)(`works compiled as it works from source${missing}`, async () => {
    const { sqlQuery: compiled } = (await import(/* @vite-ignore */ built.href)) as {
      sqlQuery: typeof sqlQuery
    }
    const ending = await new Promise<ToolSignal>((resolve) => {
      compiled({ path })
        .run(toolRun({ sql: 'SELECT max(n) FROM many' }))
        .subscribe(resolve)
    })
    expect(ending).toMatchObject({ type: 'tool_ended', outcome: 'success' })
    expect(ending.type === 'tool_ended' && joinText(ending.content)).toBe(
      '{"columns":["max(n)"],"rows":[[1000]]}',
    )
  })
})

// Which rows of a statement are shown. The tools for SQLite and Postgres share this; here it runs without a database.

/** `["a"]`, the columns, takes 5 bytes; each of these rows takes 6, with the comma before it. */
const columns = ['a']
const row = (): readonly string[] => ['x']
const bounds = (maxRows: number, maxBytes: number) => ({ maxRows, maxBytes, timeoutMs: 1, lockTimeoutMs: 1 })
const fails = (): never => {
  throw new Error('made into JSON')
}

describe('the rows that are shown', () => {
  it('given as many rows as may be shown, when all of them fit, then nothing is said to be cut', () => {
    const shown = new ShownRows(columns, bounds(2, 100))
    expect([shown.add(1, row), shown.add(1, row)]).toEqual([true, true])
    expect(shown.ending()).toEqual({ kind: 'rows', columns, rows: [['x'], ['x']] })
  })

  it('given one row more than may be shown, when it comes, then it is not made, and the rows are cut', () => {
    const shown = new ShownRows(columns, bounds(1, 100))
    shown.add(1, row)
    expect(shown.add(1, fails)).toBe(false)
    expect(shown.ending()).toMatchObject({ rows: [['x']], cut: 'rows' })
  })

  it('given bytes for columns and rows, when the next row would pass them, then it is left out', () => {
    const exact = new ShownRows(columns, bounds(9, 5 + 2 * 6))
    expect([exact.add(1, row), exact.add(1, row), exact.add(0, row)]).toEqual([true, true, false])
    expect(exact.ending()).toMatchObject({ rows: [['x'], ['x']], cut: 'bytes' })
    const short = new ShownRows(columns, bounds(9, 5 + 2 * 6 - 1))
    expect([short.add(1, row), short.add(1, row)]).toEqual([true, false])
    expect(short.ending()).toMatchObject({ rows: [['x']], cut: 'bytes' })
  })

  it('given text of several bytes a character, when it is counted, then in bytes', () => {
    const shown = new ShownRows(['ä'], bounds(9, 6 + 7))
    expect(shown.add(1, () => ['ä'])).toBe(true)
    expect(shown.add(1, () => [])).toBe(false)
    expect(shown.ending()).toMatchObject({ rows: [['ä']], cut: 'bytes' })
  })

  it('given a row that is known to be too large, when it comes, then it is not made', () => {
    const shown = new ShownRows(columns, bounds(9, 5 + 6))
    expect(shown.add(7, fails)).toBe(false)
    expect(shown.ending()).toEqual({ kind: 'rows', columns, rows: [], cut: 'bytes' })
    expect(new ShownRows(columns, bounds(9, 5 + 6)).add(6, row)).toBe(true)
  })

  it('given rows that were cut, when smaller ones follow, then none of them is shown, and the first reason holds', () => {
    const shown = new ShownRows(columns, bounds(1, 5 + 6))
    expect(shown.add(7, fails)).toBe(false)
    expect(shown.add(1, fails)).toBe(false)
    expect(shown.cut('rows')).toBe(false)
    expect(shown.ending()).toEqual({ kind: 'rows', columns, rows: [], cut: 'bytes' })
  })
})

describe('the answer to a statement', () => {
  const bounds = { maxRows: 3, maxBytes: 900, timeoutMs: 250, lockTimeoutMs: 250 }
  const answer = (reply: StatementReply): unknown => toAnswer(reply, bounds)

  function errorOf(reply: StatementReply): unknown {
    try {
      return answer(reply)
    } catch (error) {
      return error
    }
  }

  const rows = [[1, 'a']]

  it('shows columns and rows, without a note where all rows are shown', () => {
    expect(answer({ kind: 'rows', columns: ['id', 'name'], rows })).toEqual({ columns: ['id', 'name'], rows })
  })

  it('says which bound cut the rows, and how to ask for less', () => {
    const cutTo = (cut: 'rows' | 'bytes', shown: readonly (readonly (string | number)[])[]): unknown =>
      answer({ kind: 'rows', columns: ['id'], rows: shown, cut })
    expect(cutTo('rows', rows)).toMatchObject({ note: expect.stringContaining('Only the first 3 rows') })
    expect(cutTo('bytes', rows)).toMatchObject({
      note: expect.stringMatching(/^Only the first 1 rows are shown: more would be over 900 bytes\./),
    })
    expect(cutTo('bytes', [])).toMatchObject({
      note: expect.stringMatching(/^No row is shown: the first alone would be over 900 bytes\./),
    })
  })

  it('is an error that names the time of a statement that was stopped, and counts as timed out', () => {
    expect(errorOf({ kind: 'timed_out' })).toMatchObject({
      name: 'ToolError',
      outcome: 'timed_out',
      message: expect.stringContaining('not finished after 250 ms'),
    })
  })

  it('is an error that says that a statement did not run, and that the same call may succeed', () => {
    expect(errorOf({ kind: 'not_started', why: 'it was late' })).toMatchObject({
      ...{ name: 'ToolError', outcome: 'failed', retryable: true },
      message:
        'The statement did not run: it was late. The statement is not the cause: make the same call again, or continue without it.',
    })
  })

  it('is an error that names the memory of a statement that needed too much', () => {
    const error = errorOf({ kind: 'out_of_memory' })
    expect(error).toMatchObject({ name: 'ToolError', message: expect.stringContaining('too much memory') })
    expect(error).not.toMatchObject({ outcome: 'timed_out' })
  })

  it('is the error of the database, with the tables where they are known', () => {
    expect(errorOf({ kind: 'failed', message: 'no such table: x' })).toMatchObject({
      message: 'no such table: x',
    })
    expect(errorOf({ kind: 'failed', message: 'no such table: x', schema: 'y (id)' })).toMatchObject({
      message: 'no such table: x\nThe tables and views are:\ny (id)',
    })
  })
})
