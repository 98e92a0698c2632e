import BetterSqlite3, { type Database } from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { RowsInsert } from '../src/sqlite/records.ts'

/** A connection that counts the rows that each statement inserts, and the statements that it prepares. */
function counting(database: Database) {
  const statements: number[] = []
  let prepared = 0
  const prepare = (text: string): unknown => {
    prepared++
    const statement = database.prepare(text)
    return {
      run(values: readonly unknown[]) {
        const { changes } = statement.run(values)
        statements.push(changes)
      },
    }
  }
  return { connection: { prepare } as unknown as Database, statements, prepared: () => prepared }
}

it.each<readonly [number, readonly number[]]>([
  [0, []],
  [1, [1]],
  [3, [3]],
  [4, [4]],
  [5, [4, 1]],
  [15, [8, 4, 3]],
  [48, [16, 16, 16]],
  [63, [16, 16, 16, 8, 4, 3]],
  [64, [64]],
  [213, [64, 64, 64, 16, 4, 1]],
])(
  '%d rows are inserted in order, by statements of up to 4 of them, or of 8, 16 or 64',
  (count, expected) => {
    const database = new BetterSqlite3(':memory:')
    onTestFinished(() => void database.close())
    database.exec('create table pair (place integer primary key, one text, other text)')
    const { connection, statements, prepared } = counting(database)
    const pairs = new RowsInsert(connection, 'pair', ['one', 'other'])
    const rows = Array.from({ length: count }, (_row, index) => [`one ${index}`, `other ${index}`])
    pairs.run(rows.flat())
    expect(statements).toEqual(expected)
    expect(database.prepare('select one, other from pair order by place').raw().all()).toEqual(rows)
    const before = prepared()
    expect(before).toBe(new Set(expected).size)
    pairs.run(rows.flat())
    expect(prepared()).toBe(before)
  },
)
