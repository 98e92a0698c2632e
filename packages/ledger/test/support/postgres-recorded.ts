import type { RunId } from '@tallystick/core'
import { verifyLedger, verifyRun, type RunVerdict, type StoreVerdict } from '@tallystick/ledger'
import type { Client } from 'pg'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { connectionString, freshSchema, openLedger, withClient } from './postgres-database.ts'
import { recordRun } from './record-run.ts'

/** A schema with two runs. */
export interface RecordedSchema {
  readonly schema: string
  readonly runId: RunId
  readonly otherId: RunId
}

/** Two runs that the real runtime drove, in a schema that no process has open. */
export async function recordedSchema(): Promise<RecordedSchema> {
  const schema = freshSchema()
  const ledger = postgresLedger({ connectionString, schema })
  const runId = await recordRun(ledger, 1)
  const otherId = await recordRun(ledger, 2)
  await ledger.close()
  await withClient(async (client) => {
    for (const table of chained)
      await client.query(`create table ${schema}.saved_${table} as table ${schema}.${table}`)
  })
  return { schema, runId, otherId }
}

const chained = ['run', 'event']

/** Makes the runs of a schema what they were when they were recorded. */
export function restoreIn(schema: string): Promise<void> {
  return tamperIn(schema, async (client) => {
    for (const table of chained.toReversed()) await client.query(`delete from ${table}`)
    for (const table of chained) await client.query(`insert into ${table} select * from saved_${table}`)
  })
}

export async function verifiedIn(schema: string, runId: RunId): Promise<RunVerdict> {
  const ledger = openLedger(schema, { readOnly: true })
  const verdict = await verifyRun(ledger, runId)
  await ledger.close()
  return verdict
}

/** The verdicts on every run of a schema, and on the store around them. */
export async function allVerifiedIn(
  schema: string,
): Promise<{ runs: readonly RunVerdict[]; store: StoreVerdict }> {
  const ledger = openLedger(schema, { readOnly: true })
  const verdicts = await Array.fromAsync(verifyLedger(ledger))
  await ledger.close()
  const store = verdicts.pop()
  if (store?.scope !== 'store') throw new Error('The last verdict is not that of the store.')
  return { runs: verdicts.filter((verdict) => verdict.scope === 'run'), store }
}

/** Removes all that a schema holds, which only its owner can. */
export function emptyIn(schema: string): Promise<void> {
  return tamperIn(schema, async (client) => {
    // With `removal`: a case that finds the schema again would take its run for one that has lost content.
    const statements = ['inbox', 'event', 'run', 'removal', 'history'].map((table) => `delete from ${table}`)
    await client.query(statements.join('; '))
  })
}

/** Works on a schema as an owner would who wants to change what it says: without the triggers that refuse changes. */
export function tamperIn(schema: string, work: (client: Client) => Promise<void>): Promise<void> {
  return withClient(async (client) => {
    await client.query(`set search_path = ${schema}`)
    const { rows } = await client.query<{ rule: string; at: string }>(
      `select tgname::text as rule, tgrelid::regclass::text as at from pg_trigger join pg_class on pg_class.oid = tgrelid
       where relnamespace = $1::regnamespace and not tgisinternal and tgname not like 'run_summary%'`,
      [schema],
    )
    const each = (how: string): string =>
      rows.map(({ rule, at }) => `alter table ${at} ${how} trigger ${rule}`).join(';')
    await client.query(each('disable'))
    await work(client)
    await client.query(each('enable always'))
  })
}
