import {
  ConfigurationError,
  LedgerDamagedError,
  LedgerUnavailableError,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import { sampleFacts, stampFacts } from '@tallystick/testkit'
import { postgresLedger, type PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { describe, expect, it } from 'vitest'
import { postgresChild } from './support/postgres-children.ts'
import { address, append, command, next, run, start } from './support/postgres-bed.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
} from './support/postgres-database.ts'
import { transactionPooler } from './support/postgres-pooler.ts'

async function refusal(options: Partial<PostgresLedgerOptions>): Promise<unknown> {
  return await openLedger(freshSchema(), options)
    .head(run)
    .then(String, (error: unknown) => error)
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger that cannot be had', () => {
  it.each([
    [
      'nobody listens',
      (url: URL) => (url.port = '1'),
      /ECONNREFUSED.*The server cannot be reached\. Start it/,
    ],
    ['the password is wrong', (url: URL) => (url.password = 'hunter2'), /does not let this user in/],
    ['there is no such database', (url: URL) => (url.pathname = 'nowhere'), /There is no such database/],
  ])('says what to do where %s, and repeats no secret', async (_where, change, said) => {
    const error = await refusal({ connectionString: address(change) })
    expect(error).toBeInstanceOf(LedgerUnavailableError)
    expect(String(error)).toMatch(said)
    expect(String(error)).not.toMatch(/hunter2|password=/)
    expect(String(error)).not.toContain(new URL(connectionString).password)
  })

  it('says what to do where the server has no connection left', async () => {
    await rowsOf(`create role crowd login password 'secret' connection limit 0`)
    const crowd = address((url) => {
      url.username = 'crowd'
      url.password = 'secret'
    })
    expect(String(await refusal({ connectionString: crowd }))).toMatch(
      /no connection left. Lower maxConnections/,
    )
  })

  it('says what to do where there is an undeclared pooler before it', async () => {
    const pooler = await transactionPooler(connectionString)
    const ledger = openLedger(freshSchema(), { connectionString: pooler.connectionString })
    await ledger.head(run)
    const again = ledger.head(run)
    await expect(again).rejects.toThrow(LedgerUnavailableError)
    await expect(again).rejects.toThrow(/prepared statement.*Open with pooled: true/)
    await ledger.close()
    pooler.close()
  })

  it('is tried again at the next use', async () => {
    const schema = freshSchema()
    const reader = openLedger(schema, { readOnly: true })
    await expect(reader.head(run)).rejects.toThrow(/There is no ledger/)
    await append(openLedger(schema), start)
    expect(await reader.head(run)).toEqual({ seq: 1, epoch: 1 })
  })

  it('is damaged where a table lacks what its version promises', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await append(ledger, start)
    await rowsOf(`alter table ${schema}.event rename column body to corpse`)
    const reading = Array.fromAsync(ledger.read(run))
    await expect(reading).rejects.toThrow(LedgerDamagedError)
    await expect(reading).rejects.toThrow(/column event.body does not exist.*Run verify on it/)
  })
})

describe('options that cannot work', () => {
  it.each<readonly [string, Partial<PostgresLedgerOptions>, RegExp]>([
    ['no connection string', { connectionString: ' ' }, /needs a connectionString/],
    ['one that cannot be read', { connectionString: 'postgres://ada:hunter2@[/x' }, /cannot be read/],
    ['an empty schema', { schema: '' }, /schema name/],
    ['a schema that Postgres would cut short', { schema: 'x'.repeat(64) }, /1 to 63 bytes/],
    ['a schema of Postgres itself', { schema: 'pg_mine' }, /does not begin with pg_/],
    ['half a connection', { maxConnections: 0.5 }, /maxConnections is 0.5.*whole number from 1/],
    ['no time at all', { statementTimeoutMs: 0 }, /statementTimeoutMs is 0/],
    ['an endless wait', { pollIntervalMs: Number.POSITIVE_INFINITY }, /pollIntervalMs is Infinity/],
  ])('are refused before anything is connected: %s', (_name, options, said) => {
    const open = (): Ledger => postgresLedger({ connectionString: 'postgres://127.0.0.1:1/x', ...options })
    expect(open).toThrow(ConfigurationError)
    expect(open).toThrow(said)
    expect(open).not.toThrow(/hunter2/)
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('ids that Postgres cannot hold', () => {
  it('name no run, and are refused in appends', async () => {
    const ledger = openLedger(freshSchema())
    for (const odd of ['a\0b', 'half \ud800'] as RunId[]) {
      expect(await ledger.head(odd)).toBeUndefined()
      expect(await Array.fromAsync(ledger.read(odd))).toEqual([])
      expect(await ledger.inbox(odd)).toEqual([])
      expect(await Array.fromAsync(ledger.runs({ sessionId: odd }))).toEqual([])
      await expect(ledger.acquire(odd)).rejects.toMatchObject({ code: 'run_not_found' })
      await expect(ledger.put(odd, { key: 'k', command, at: 1 })).rejects.toMatchObject({
        code: 'run_not_found',
      })
      const events = stampFacts(odd, [sampleFacts(run).cancel_requested])
      await expect(append(ledger, events, odd)).rejects.toThrow(ConfigurationError)
    }
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('closing', () => {
  it('waits for what is under way, and leaves no connection open', async () => {
    const schema = freshSchema()
    const mine = address((url) => url.searchParams.set('application_name', schema))
    const ledger = openLedger(schema, { connectionString: mine })
    let completed = 0
    ledger.changes(run).subscribe({ complete: () => completed++ })
    await append(ledger, start)
    const appending = append(ledger, next)
    await ledger.close()
    expect(await appending).toEqual({ seq: 3, epoch: 1 })
    expect(completed).toBe(1)
    // A server process ends a moment after its client has gone.
    const left = `select from pg_stat_activity where application_name = $1`
    while ((await rowsOf(left, [schema])).length > 0);
    await expect(ledger.head(run)).rejects.toThrow(/was closed/)
  })

  it('is not needed for a process to end', async () => {
    const child = postgresChild(['leave', connectionString, freshSchema()])
    expect(await child.ended()).toEqual([{ seq: 1, epoch: 1 }])
  })
})
