// Which rows of a statement are shown. The tools for SQLite and Postgres share this; here it runs without a database.
import { describe, expect, it } from 'vitest'
import { ShownRows } from '../../src/built-in/sql-query/answer.ts'

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
