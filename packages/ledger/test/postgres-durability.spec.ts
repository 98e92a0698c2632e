import { LedgerUnavailableError, type Ledger, type RunId } from '@tallystick/core'
import { type AppendOptions, type Head } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { postgresLedger, type PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { chainFaults, textsOf } from './support/postgres-chain.ts'
import { freshSchema, hasPostgres, withClient } from './support/postgres-database.ts'
import { startPostgres, type PostgresProcess } from './support/postgres-process.ts'

const [run, otherRun] = [sampleRunId(1), sampleRunId(2)]
const barrier: AppendOptions = { durability: 'barrier' }
const lazy: AppendOptions = { durability: 'lazy' }

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('on a server that writes its log only when it is asked to', () => {
  let server: PostgresProcess
  let connectionString: string
  beforeAll(async () => {
    // Nothing else writes the log to the disk while a test lasts: not the writer that wakes up now and then, nor vacuum.
    const asked = ['wal_writer_delay=10s', 'wal_writer_flush_after=1GB', 'autovacuum=off']
    // What was handed to the operating system outlives a server that is killed.
    server = await startPostgres([...asked, 'fsync=off', 'full_page_writes=off'])
    if ('unavailable' in server.server) throw new Error(server.server.unavailable)
    connectionString = server.server.connectionString
  })
  afterAll(() => server.end())

  function openLedger(schema: string, options: Partial<PostgresLedgerOptions> = {}): Ledger {
    const ledger = postgresLedger({ connectionString, schema, ...options })
    onTestFinished(() => ledger.close().catch(() => undefined))
    return ledger
  }

  function append(
    ledger: Ledger,
    head: Head,
    options: AppendOptions,
    { text = 'x', runId = run }: { readonly text?: string; readonly runId?: RunId } = {},
  ): Promise<Head> {
    const fact =
      head.seq === 0 ? sampleFacts(runId).run_started : { ...sampleFacts(runId).assistant_text_delta, text }
    const events = stampFacts(runId, [fact], { afterSeq: head.seq, epoch: head.epoch })
    return ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, events, options)
  }

  const none: Head = { seq: 0, epoch: 1 }

  /** How far the log has been written, and how far of that to the disk. */
  function log(): Promise<{ readonly written: number; readonly synced: number }> {
    return withClient(async (client) => {
      const { rows } = await client.query<{ written: string; synced: string }>(
        `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as written,
          pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0') as synced`,
      )
      return { written: Number(rows[0]?.written), synced: Number(rows[0]?.synced) }
    }, connectionString)
  }

  /** Whether all that was in the log was on the disk, before `harden` and after it. */
  async function syncedBy(harden: () => Promise<unknown>): Promise<readonly [boolean, boolean]> {
    const { written, synced } = await log()
    await harden()
    return [synced >= written, (await log()).synced >= written]
  }

  it('a lazy append waits for no disk, and whatever asks for durability hardens it', async () => {
    const ledger = openLedger(freshSchema())
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    let head = await append(ledger, none, barrier)
    let other = await append(ledger, none, barrier, { runId: otherRun })
    const hardening: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['a barrier of the run', async () => (head = await append(ledger, head, barrier))],
      [
        'a barrier of another run',
        async () => (other = await append(ledger, other, barrier, { runId: otherRun })),
      ],
      [
        'a barrier without events',
        () => ledger.append(run, { expectedSeq: head.seq, epoch: 1 }, [], barrier),
      ],
      [
        'a barrier that only lost its acknowledgement',
        () => append(ledger, { ...head, seq: head.seq - 1 }, barrier),
      ],
      ['a put', () => ledger.put(run, { key: 'k1', command, at: 1 })],
      ['a take-over', async () => (other = await ledger.acquire(otherRun))],
      ['a tail that yields it', async () => void (await Array.fromAsync(ledger.tail()))],
      ['closing', () => ledger.close()],
    ]
    for (const [what, harden] of hardening) {
      head = await append(ledger, head, lazy)
      expect([what, ...(await syncedBy(harden))]).toEqual([what, false, true])
    }
  })

  it('a barrier is one whatever the settings of the database ask for', async () => {
    const url = new URL(connectionString)
    await withClient(async (client) => {
      await client.query('create database hasty')
      await client.query('alter database hasty set synchronous_commit = off')
    }, connectionString)
    url.pathname = 'hasty'
    const ledger = openLedger(freshSchema(), { connectionString: url.href })
    const first = await append(ledger, none, barrier)
    const head = await append(ledger, first, lazy)
    expect(await syncedBy(() => append(ledger, head, barrier))).toEqual([false, true])
  })

  it('what was acknowledged at a barrier outlives the server, with all that stood before it', async () => {
    const schema = freshSchema()
    let durable = 0
    let acknowledged: Head = none
    const ledger = openLedger(schema, { maxConnections: 3 })
    for (let round = 0; round < 3; round++) {
      let head = round === 0 ? await append(ledger, none, barrier) : await ledger.acquire(run)
      const first = head.seq
      for (const step of [
        'lazy',
        'lazy',
        'barrier',
        'lazy',
        'lazy',
        'barrier',
        'lazy',
        'lazy',
        'lazy',
      ] as const) {
        head = await append(ledger, head, { durability: step }, { text: `${round} ${head.seq + 1}` })
        if (step === 'barrier') durable = head.seq
      }
      acknowledged = head
      await server.kill()
      const refused = append(ledger, head, barrier, { text: 'while it is down' })
      await expect(refused).rejects.toThrow(LedgerUnavailableError)
      await expect(refused).rejects.toThrow(/cannot be reached|connection|Connection/)
      await server.start()
      // The same ledger continues: its connections were lost, and it makes new ones.
      const found = await ledger.head(run)
      expect(found?.seq).toBeGreaterThanOrEqual(durable)
      expect(found?.seq).toBeLessThanOrEqual(acknowledged.seq)
      expect(found?.epoch).toBe(head.epoch)
      expect(await chainFaults(ledger, run)).toEqual([])
      const texts = await textsOf(ledger, run)
      for (let seq = first + 1; seq <= (found?.seq ?? 0); seq++)
        expect(texts.get(seq)).toBe(`${round} ${seq}`)
    }
  })

  it('a take-over and a command that were acknowledged outlive the server', async () => {
    const ledger = openLedger(freshSchema())
    await append(ledger, none, lazy)
    const command = { type: 'cancel', by: 'ada' } as const
    expect(await ledger.put(run, { key: 'k1', command, at: 7 })).toBe(true)
    const head = await ledger.acquire(run)
    await server.kill()
    await server.start()
    expect(await ledger.inbox(run)).toEqual([{ key: 'k1', command, at: 7 }])
    expect(await ledger.head(run)).toEqual(head)
    expect(await ledger.put(run, { key: 'k1', command, at: 8 })).toBe(false)
  })

  it('a server that is killed under load loses nothing that it acknowledged', async () => {
    const ledger = openLedger(freshSchema())
    const ids = Array.from({ length: 12 }, (_, index) => sampleRunId(index + 1))
    const durable = new Map<string, number>()
    const drive = async (runId: (typeof ids)[number]): Promise<unknown> => {
      let head = await append(ledger, none, barrier, { runId })
      for (;;) {
        head = await append(ledger, head, lazy, { text: `${head.seq + 1}`, runId })
        head = await append(ledger, head, barrier, { text: `${head.seq + 1}`, runId })
        durable.set(runId, head.seq)
        if (durable.size === ids.length && head.seq > 60) enough()
      }
    }
    let enough: () => void = () => undefined
    const reached = new Promise<void>((resolve) => {
      enough = resolve
    })
    const driving = ids.map((runId) => drive(runId).catch((error: unknown) => error))
    await reached
    await server.kill()
    for (const error of await Promise.all(driving)) expect(error).toBeInstanceOf(LedgerUnavailableError)
    await server.start()
    for (const runId of ids) {
      expect((await ledger.head(runId))?.seq).toBeGreaterThanOrEqual(durable.get(runId) ?? 0)
      expect(await chainFaults(ledger, runId)).toEqual([])
      const texts = await textsOf(ledger, runId)
      for (const [seq, text] of texts) expect(text).toBe(seq === 1 ? '' : `${seq}`)
    }
  })
})
