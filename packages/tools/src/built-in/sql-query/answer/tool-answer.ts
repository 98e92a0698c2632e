import type { Json } from '@tallystick/core/vocabulary'
import { ToolError } from '../../../execution/tool-error.ts'
import type { Cut, RowsEnding, StatementBounds, StatementReply } from './statement.ts'

/** What the model receives of a statement's ending. Throws `ToolError` where it shows no rows. */
export function toolAnswer(reply: StatementReply, bounds: StatementBounds): Json {
  if (reply.kind === 'rows') return shown(reply, bounds)
  if (reply.kind === 'failed') throw new ToolError(failureText(reply))
  if (reply.kind === 'not_started') {
    throw new ToolError(
      `The statement did not run: ${reply.why}. The statement is not the cause: make the same call again, or continue without it.`,
      { retryable: true },
    )
  }
  if (reply.kind === 'timed_out') {
    throw new ToolError(
      `The statement was stopped: it had not finished after ${bounds.timeoutMs} ms. ` +
        'Make it cheaper: filter earlier, join on indexed columns, end every recursion.',
      { outcome: 'timed_out' },
    )
  }
  throw new ToolError(
    'The statement was stopped: it needed too much memory. Select fewer or smaller values, or aggregate them.',
  )
}

function shown({ columns, rows, cut }: RowsEnding, bounds: StatementBounds): Json {
  return cut === undefined ? { columns, rows } : { columns, rows, note: noteOf(cut, rows.length, bounds) }
}

function noteOf(cut: Cut, rowsShown: number, { maxRows, maxBytes }: StatementBounds): string {
  if (cut === 'rows') {
    return `Only the first ${maxRows} rows are shown, there are more. Aggregate, filter, or page with ORDER BY, LIMIT and OFFSET.`
  }
  const start =
    rowsShown === 0 ? 'No row is shown: the first alone' : `Only the first ${rowsShown} rows are shown: more`
  return `${start} would be over ${maxBytes} bytes. Select fewer columns or rows, or parts of long values with substr().`
}

function failureText({ message, schema }: Extract<StatementReply, { kind: 'failed' }>): string {
  return schema === undefined ? message : `${message}\nThe tables and views are:\n${schema}`
}
