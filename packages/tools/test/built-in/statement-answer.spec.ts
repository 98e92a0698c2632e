import { describe, expect, it } from 'vitest'
import { type StatementReply, toAnswer } from '../../src/built-in/sql-query/answer.ts'

const bounds = { maxRows: 3, maxBytes: 900, timeoutMs: 250, lockTimeoutMs: 250 }
const answer = (reply: StatementReply): unknown => toAnswer(reply, bounds)

function errorOf(reply: StatementReply): unknown {
  try {
    return answer(reply)
  } catch (error) {
    return error
  }
}

describe('the answer to a statement', () => {
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
