import { hash } from 'node:crypto'
import type { EventRow } from '../format/event-row.ts'
import {
  bytesPerBatch,
  type Queries,
  rowsPerBatch,
  type Steps,
  type StoreDatabase,
} from '../store/database.ts'
import type { Connections, Statement } from './connections.ts'
import { durabilityText, placeInSchema, nowText } from './schema.ts'

/** An open schema, for statements. */
export type OpenSchema = Omit<StoreDatabase, 'isWritable' | 'requireOpen'>

/** The database of a schema. */
export function openSchema(connections: Connections, quotedSchema: string, queries: Queries): OpenSchema {
  const known = new Map<string, Pick<Statement, 'name' | 'text'>>()
  // With a name, connections keep a statement parsed.
  const named = (text: string): Pick<Statement, 'name' | 'text'> => {
    const found = known.get(text)
    if (found) return found
    const name = `tallystick ${hash('sha256', text).slice(0, 20)}`
    const statement = { name, text: placeInSchema(text, quotedSchema) }
    known.set(text, statement)
    return statement
  }
  const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    connections.rows<Row>({ ...named(text), values })
  return {
    maxScanned: 65_536,
    now: nowText,
    ask,
    askBatch: <Row extends EventRow>(text: string, order: readonly string[], values: readonly unknown[]) =>
      ask<Row>(boundQuery(text, order), values),
    query(build, { patiently = false } = {}) {
      const { sql: text, parameters: values } = build(queries).compile(queries.db)
      return patiently ? connections.patiently({ text, values }) : connections.rows({ text, values })
    },
    change: (steps) =>
      connections.transact(async (query) => {
        await query({ text: `select ${durabilityText.lazy}`, values: [] })
        return await carryOut(steps(queries), query)
      }),
  }
}

/** Rows up to the first that takes their bodies over what a batch holds. */
function boundQuery(query: string, columns: readonly string[]): string {
  const order = columns.join(', ')
  const inner = columns.map((column) => `event.${column}`).join(', ')
  return `select * from (
    select chosen.*, sum(octet_length(body)) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
    from (${query} order by ${inner} limit ${rowsPerBatch}) as chosen
  ) as event where coalesce(bytes_before, 0) < ${bytesPerBatch} order by ${order}`
}

/** Sends the queries of a transaction one by one. */
export async function carryOut<T>(
  steps: Steps<T>,
  query: (statement: Statement) => Promise<readonly unknown[]>,
): Promise<T> {
  let next = steps.next([])
  while (!next.done) next = steps.next(await query({ text: next.value.sql, values: next.value.parameters }))
  return next.value
}
