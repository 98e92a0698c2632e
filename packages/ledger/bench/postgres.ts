import { Client } from 'pg'
import type { LinkedRow } from '../src/record/linked-row.ts'
import { postgresLedger } from '../src/postgres/postgres-ledger.ts'
import { startPostgres } from '../test/support/postgres-process.ts'
import type { Compared, RawStore } from './store.ts'

const columns = 'pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash'

/** A ledger in a server of its own, and a schema of the same tables without triggers, written by pg alone. */
export async function postgresCompared(): Promise<Compared | undefined> {
  const { server, end } = await startPostgres([])
  if ('unavailable' in server) {
    console.log(`Postgres is left out: ${server.unavailable}.`)
    await end()
    return undefined
  }
  const { connectionString } = server
  const made = postgresLedger({ connectionString, schema: 'raw' })
  await made.head('' as never)
  await made.close()
  const client = new Client({ connectionString })
  await client.connect()
  await client.query('set search_path = raw')
  for (const table of ['run', 'event', 'payload', 'inbox']) {
    await client.query(`alter table ${table} disable trigger all`)
    const triggers = await client.query<{ tgname: string }>(
      `select tgname from pg_trigger where tgrelid = '${table}'::regclass and not tgisinternal`,
    )
    for (const { tgname } of triggers.rows) await client.query(`drop trigger ${tgname} on ${table}`)
  }
  const ledger = postgresLedger({ connectionString })
  return {
    ...{ name: 'Postgres', ledger, raw: rawStore(client) },
    async close() {
      await ledger.close()
      await client.end()
      await end()
    },
  }
}

function rawStore(client: Client): RawStore {
  let pos = 0
  return {
    async append(rows) {
      const values = rows.flatMap((row) => valuesOf(row, ++pos))
      const { envelope: event, hash } = rows.at(-1) as LinkedRow
      const head = [event.runId, pos, event.seq, hash, event.epoch]
      const name = `append ${rows.length}`
      await client.query({ name, text: appendText(rows.length), values: [...values, ...head] })
    },
    async read(runId) {
      const { rows } = await client.query<{ body: Buffer }>({
        name: 'read',
        text: 'select event.*, salt, body from event join payload using (pos) where run_id = $1 order by seq',
        values: [runId],
      })
      for (const { body } of rows) JSON.parse(body.toString())
      return rows.length
    },
  }
}

function valuesOf({ envelope: event, onceKey, ...row }: LinkedRow, pos: number): readonly unknown[] {
  const { runId, seq, epoch, type, v, turn, toolCallId, at } = event
  const { bodyCommit, hash, salt, body } = row
  return [pos, runId, seq, epoch, type, v, turn, toolCallId, at, onceKey, bodyCommit, hash, salt, body]
}

/** One statement and so one round trip and one commit, as a good hand would write it. */
function appendText(rows: number): string {
  const each = Array.from({ length: rows }, (_, index) => index * 14)
  const listOf = (row: number, places: readonly number[]): string =>
    `(${places.map((place) => `$${row + place}`).join(', ')})`
  const eventPlaces = Array.from({ length: 12 }, (_, index) => index + 1)
  const head = [1, 2, 3, 4, 5].map((place) => `$${rows * 14 + place}`)
  return `with written as (insert into event (${columns}) values ${each.map((row) => listOf(row, eventPlaces)).join(', ')}),
    said as (insert into payload (pos, salt, body) values ${each.map((row) => listOf(row, [1, 13, 14])).join(', ')})
    insert into run (run_id, pos, head_seq, head_hash, epoch, seal) values (${head.join(', ')}, '')
    on conflict (run_id) do update set head_seq = excluded.head_seq, head_hash = excluded.head_hash`
}
