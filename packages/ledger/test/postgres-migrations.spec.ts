import { LedgerUnavailableError, type Ledger, type RunId } from '@tallystick/core'
import { type Fact } from '@tallystick/core/vocabulary'
import { everyFact, sampleRunId } from '@tallystick/core/testing'
import { watchLedger } from '@tallystick/ledger'
import { firstValueFrom, take, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { schemaVersion } from '../src/postgres/schema/migrate.ts'
import { chainFaults } from './support/postgres-chain.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'
import { makeFirstSchema, oldWriter } from './support/postgres-first-schema.ts'

const [first, second, third] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]
const saying = (text: string): Fact => ({ ...everyFact(first).assistant_text_delta, text })

/** The first so many events of a tail, as `run seq`: other tests may have transactions open too. */
async function tailed(ledger: Ledger, count: number): Promise<readonly string[]> {
  const seen = await firstValueFrom(watchLedger(ledger).pipe(take(count), toArray()))
  return seen.map(({ event }) => `${event.runId} ${event.seq}`)
}

const versionOf = async (schema: string): Promise<unknown> =>
  (await rowsOf<{ version: string }>(`select version from ${schema}.ledger`))[0]?.version

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger of the first version in Postgres', () => {
  it('is brought up to date with all that it holds, which a tail yields in front of what comes', async () => {
    const schema = freshSchema()
    await makeFirstSchema(schema)
    const old = await oldWriter(schema)
    for (const runId of [first, second]) await old.append(runId, [everyFact(runId).run_started])
    for (const text of ['a', 'b'])
      for (const runId of [second, first]) await old.append(runId, [saying(text)])
    const ledger = openLedger(schema)
    const before = [`${first} 1`, `${second} 1`, `${second} 2`, `${first} 2`, `${second} 3`, `${first} 3`]
    expect(await tailed(ledger, 6)).toEqual(before)
    expect(await versionOf(schema)).toBe(String(schemaVersion))
    // No row was written again: what stood has the lowest number that there is.
    expect(await rowsOf(`select distinct xid from ${schema}.event`)).toEqual([{ xid: '3' }])
    await old.append(first, [saying('c'), saying('d')])
    await old.append(third, [everyFact(third).run_started])
    expect(await tailed(ledger, 9)).toEqual([...before, `${first} 4`, `${first} 5`, `${third} 1`])
    for (const runId of [first, second, third]) expect(await chainFaults(ledger, runId)).toEqual([])
  })

  it('loses nothing of what older processes append while many bring it up to date at once', async () => {
    const schema = freshSchema()
    await makeFirstSchema(schema)
    const runIds = [first, second, third]
    const migrated = { isOver: false }
    const acknowledged = new Map<RunId, number>()
    const write = async (runId: RunId): Promise<void> => {
      const old = await oldWriter(schema)
      await old.append(runId, [everyFact(runId).run_started])
      let seq = 1
      for (let after = 0; after < 5;) {
        seq = await old.append(runId, [saying(`${seq}`), saying(`${seq}`)])
        if (migrated.isOver) after++
      }
      acknowledged.set(runId, seq)
    }
    const writing = Promise.all(runIds.map(write))
    const ledger = openLedger(schema)
    const ledgers = [ledger, ...Array.from({ length: 5 }, () => openLedger(schema))]
    await Promise.all(ledgers.map((each) => each.head(first))).finally(() => (migrated.isOver = true))
    await writing
    expect(await versionOf(schema)).toBe(String(schemaVersion))
    const events = runIds.reduce((sum, runId) => sum + (acknowledged.get(runId) ?? 0), 0)
    const places = await tailed(ledger, events)
    for (const runId of runIds) {
      const seqs = places
        .filter((place) => place.startsWith(runId))
        .map((place) => Number(place.split(' ')[1]))
      expect(seqs).toEqual(Array.from({ length: acknowledged.get(runId) ?? 0 }, (_, index) => index + 1))
      expect(await chainFaults(ledger, runId)).toEqual([])
    }
    expect(new Set(places).size).toBe(events)
  })

  it('stays as it is where the role may not bring it up to date, and says so', async () => {
    const schema = freshSchema()
    await makeFirstSchema(schema)
    const role = `older_${process.pid}`
    await withClient(async (client) => {
      await client.query(`create role ${role} login password 'secret'`)
      await client.query(`grant usage on schema ${schema} to ${role}`)
      await client.query(`grant select, insert, update, delete on all tables in schema ${schema} to ${role}`)
      await client.query(`grant usage on all sequences in schema ${schema} to ${role}`)
    })
    const url = new URL(connectionString)
    url.username = role
    url.password = 'secret'
    const refused = openLedger(schema, { connectionString: url.href }).head(first)
    await expect(refused).rejects.toThrow(LedgerUnavailableError)
    await expect(refused).rejects.toThrow(/must be owner.*The role may not do this/)
    expect(await versionOf(schema)).toBe('1')
    const fresh = freshSchema()
    const unmade = openLedger(fresh, { connectionString: url.href }).head(first)
    await expect(unmade).rejects.toThrow(/permission denied.*The role may not do this/)
    expect(await rowsOf('select from pg_namespace where nspname = $1', [fresh])).toEqual([])
    const reading = openLedger(schema, { connectionString: url.href, readOnly: true }).head(first)
    await expect(reading).rejects.toThrow(/older schema version 1, and readOnly upgrades nothing/)
    await expect(reading).rejects.toMatchObject({ reason: 'older_schema' })
    const old = await oldWriter(schema)
    expect(await old.append(first, [everyFact(first).run_started])).toBe(1)
  })
})
