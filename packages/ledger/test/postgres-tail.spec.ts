import { LedgerUnavailableError, type Ledger, type RunId } from '@tallystick/core'
import type { TailedEvent, TailCursor } from '@tallystick/core/vocabulary'
import { watchLedger } from '@tallystick/ledger'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { firstValueFrom, take, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { goesOnBehindDropped } from './support/dropped-cursor.ts'
import { postgresChild } from './support/postgres-children.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { statementsOf } from './support/postgres-statements.ts'
import { openTransaction } from './support/postgres-transaction.ts'

const [first, second, third] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]
const never = 0x7fffffff

async function start(ledger: Ledger, runId: RunId): Promise<void> {
  const events = stampFacts(runId, [sampleFacts(runId).run_started])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
}

/** The runs of the rest of a tail, once there are so many events: other tests may have transactions open too. */
async function runsBehind(
  ledger: Ledger,
  after: TailedEvent | undefined,
  count: number,
): Promise<readonly RunId[]> {
  const tailed = await firstValueFrom(watchLedger(ledger, after?.cursor).pipe(take(count), toArray()))
  return tailed.map(({ event }) => event.runId)
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a tail in Postgres', () => {
  it('yields nothing that a transaction under way may still come before, so that nothing is missed', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await start(ledger, third)
    await runsBehind(ledger, undefined, 1)
    const held = await openTransaction(schema)
    await held.start(schema, first, [sampleFacts(first).run_started])
    await start(ledger, second)
    // The second is committed, with the greater pos and xid. A reader that got it now would continue after it, and miss the first.
    const seen = await Array.fromAsync(ledger.tail())
    expect(await Array.fromAsync(ledger.read(second))).toHaveLength(1)
    expect(seen.map(({ event }) => event.runId)).toEqual([third])
    await held.commit()
    expect(await runsBehind(ledger, seen.at(-1), 2)).toEqual([first, second])
  })

  it('goes by transactions, not by pos, where they come in another order', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await ledger.head(first)
    const held = await openTransaction(schema)
    await held.write()
    await start(ledger, second)
    await held.start(schema, first, [sampleFacts(first).run_started])
    expect(await Array.fromAsync(ledger.tail())).toEqual([])
    await held.commit()
    expect(await runsBehind(ledger, undefined, 2)).toEqual([first, second])
    const stored = await rowsOf<{ run_id: string }>(`select run_id from ${schema}.event order by pos`)
    expect(stored.map(({ run_id }) => run_id)).toEqual([second, first])
  })

  it('has the events of a run in order of seq, since the database refuses one of an earlier transaction', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await start(ledger, first)
    const held = await openTransaction(schema)
    await held.write()
    const next = stampFacts(first, [sampleFacts(first).usage_updated], { afterSeq: 1 })
    await ledger.append(first, { expectedSeq: 1, epoch: 1 }, next, { durability: 'barrier' })
    const late = held.send(`with moved as (update ${schema}.run set head_seq = 3)
      insert into ${schema}.event (pos, run_id, seq, type, turn, at, epoch, v, body, salt, hash)
      select pos + 100, run_id, 3, type, turn, at, 1, v, body, salt, hash from ${schema}.event where seq = 2`)
    await expect(late).rejects.toThrow(/carries its own transaction, after that of the event before it/)
  })

  it('continues when the transaction that it waited for is undone, without a notification', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema, { pollIntervalMs: never })
    await ledger.head(first)
    const held = await openTransaction(schema)
    await held.write()
    const seen: RunId[] = []
    const hints = watchLedger(ledger).subscribe(({ event }) => seen.push(event.runId))
    onTestFinished(() => hints.unsubscribe())
    await start(ledger, second)
    await vi.waitUntil(async () => (await ledger.horizon()).waitingEvents === 1, { timeout: 60_000 })
    expect(seen).toEqual([])
    await held.rollback()
    await vi.waitUntil(() => seen.length > 0, { timeout: 60_000 })
    expect(seen).toEqual([second])
  })

  it('continues after the cursors of a run that was dropped, on record', async () => {
    await expect(goesOnBehindDropped(openLedger(freshSchema()))).resolves.toBeUndefined()
  })

  it('says how many events wait, and for which transaction', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await start(ledger, first)
    const held = await openTransaction(schema)
    await held.write()
    await start(ledger, second)
    await start(ledger, third)
    // Other tests have transactions open too, but none for long.
    const isOurs = async (): Promise<boolean> => (await ledger.horizon()).oldest?.pid === held.pid
    await vi.waitUntil(isOurs, { timeout: 60_000 })
    const { waitingEvents, oldest } = await ledger.horizon()
    expect({ waitingEvents, oldest }).toEqual({
      waitingEvents: 2,
      oldest: {
        pid: held.pid,
        database: 'postgres',
        applicationName: schema,
        state: 'idle in transaction',
        ageMs: expect.any(Number) as number,
      },
    })
    expect(oldest?.ageMs).toBeGreaterThan(0)
    expect((await ledger.horizon()).oldest?.ageMs).toBeGreaterThan(oldest?.ageMs ?? 0)
    await held.commit()
    await vi.waitUntil(async () => (await ledger.horizon()).waitingEvents === 0, { timeout: 60_000 })
  })

  it('is refused where a dump of another server was restored, and works when its owner has numbered the events anew', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await start(ledger, first)
    const [before] = await firstValueFrom(watchLedger(ledger).pipe(take(1), toArray()))
    await tamperIn(
      schema,
      async (client) => void (await client.query(`update event set xid = '99999999999'`)),
    )
    const refused = Array.fromAsync(ledger.tail())
    await expect(refused).rejects.toThrow(LedgerUnavailableError)
    await expect(refused).rejects.toThrow(/came from another server.*number them anew/)
    // Everything else works: a later append comes after it, although its transaction is the lower one.
    const next = stampFacts(first, [sampleFacts(first).cancel_requested], { afterSeq: 1 })
    await ledger.append(first, { expectedSeq: 1, epoch: 1 }, next, { durability: 'barrier' })
    await withClient(async (client) => {
      await client.query(`begin;
        alter table ${schema}.event disable trigger event_stays;
        update ${schema}.event set xid = '3';
        alter table ${schema}.event enable always trigger event_stays;
        commit`)
    })
    await start(ledger, second)
    expect(await runsBehind(ledger, undefined, 3)).toEqual([first, first, second])
    await expect(Array.fromAsync(ledger.tail(before?.cursor))).rejects.toThrow(
      /does not belong to an event of this ledger/,
    )
  })

  it('finds its events by their index, however the plan is made', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    for (let ordinal = 1; ordinal <= 20; ordinal++) {
      const runId = sampleRunId(ordinal)
      const facts = Array.from({ length: 99 }, () => sampleFacts(runId).usage_updated)
      const events = stampFacts(runId, [sampleFacts(runId).run_started, ...facts])
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    }
    const texts = await statementsOf(async (texts) => {
      await Array.fromAsync(openLedger(schema).tail())
      const following = openLedger(schema).changes().subscribe()
      while (![...texts.values()].some(({ text }) => text.includes(' as mark')))
        await new Promise((resolve) => setImmediate(resolve))
      following.unsubscribe()
    })
    const textWith = (words: string): string =>
      [...texts.values()].find(({ text }) => text.includes(words))?.text ?? ''
    await withClient(async (client) => {
      await client.query(`analyze ${schema}.event; analyze ${schema}.inbox`)
      await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
      const planOf = async (text: string, values: readonly unknown[]): Promise<string> => {
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...values])
        return rows.map((row) => row['QUERY PLAN']).join('\n')
      }
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        await client.query(`set plan_cache_mode = ${mode}`)
        const plans = {
          begin: await planOf(textWith('as is_durable'), ['800', 5, first]),
          mark: await planOf(textWith(' as mark'), []),
          page: await planOf(textWith('bytes_before'), ['800', 5, '99999']),
        }
        for (const plan of Object.values(plans)) {
          expect(plan).toMatch(/event_tail/)
          expect(plan).not.toMatch(/Seq Scan/)
        }
      }
    })
  })

  it('is read by a role that may only read, which is not told since when it waits', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const reader = `tail_reader_${process.pid}`
    await start(ledger, first)
    await withClient(async (client) => {
      await client.query(`create role ${reader} login password 'secret'`)
      await client.query(`grant usage on schema ${schema} to ${reader}`)
      await client.query(`grant select on all tables in schema ${schema} to ${reader}`)
    })
    const url = new URL(connectionString)
    url.username = reader
    url.password = 'secret'
    const lazy = stampFacts(first, [sampleFacts(first).cancel_requested], { afterSeq: 1 })
    await ledger.append(first, { expectedSeq: 1, epoch: 1 }, lazy, { durability: 'lazy' })
    const other = openLedger(schema, { connectionString: url.href, readOnly: true })
    expect(await runsBehind(other, undefined, 2)).toEqual([first, first])
    const held = await openTransaction(schema)
    await held.write()
    await start(ledger, second)
    await vi.waitUntil(async () => (await ledger.horizon()).oldest?.pid === held.pid, { timeout: 60_000 })
    expect(await other.horizon()).toEqual({
      waitingEvents: 1,
      oldest: { pid: held.pid, database: 'postgres', applicationName: schema },
    })
    await held.rollback()
  })
})

interface Seen {
  readonly cursor: TailCursor
  readonly runId: RunId
  readonly seq: number
}

const [writers, runs, appends] = [3, 5, 60]
/** Each append holds two. */
const events = writers * appends * 2

/** Holds transactions open while others write, one after the other, until the parent says that they have ended. */
async function holdBack(schema: string, isOver: () => boolean): Promise<number> {
  const ledger = openLedger(schema)
  let held = 0
  while (!isOver()) {
    const transaction = await openTransaction(schema)
    await transaction.write()
    // Whatever is committed meanwhile waits for it.
    while (!isOver() && (await ledger.horizon()).waitingEvents < 20);
    await (held % 2 === 0 ? transaction.rollback() : transaction.commit())
    held++
  }
  return held
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a tail that follows several processes in Postgres', () => {
  it('misses nothing and repeats nothing, also where its own process is killed and another continues', async () => {
    const schema = freshSchema()
    await openLedger(schema).head('' as RunId)
    const children = Array.from({ length: writers }, (_, index) =>
      postgresChild([
        'contend',
        connectionString,
        schema,
        JSON.stringify([`writer ${index}`, runs, appends]),
      ]),
    )
    const writing = { isOver: false }
    const written = Promise.all(children.map((child) => child.ended())).finally(() => (writing.isOver = true))
    const holding = holdBack(schema, () => writing.isOver)
    const seen: Seen[] = []
    let followers = 0
    while (seen.length < events) {
      const follower = postgresChild(['follow', connectionString, schema, seen.at(-1)?.cursor ?? ''])
      followers++
      // The first ones are killed in the middle of it.
      const until = followers < 4 ? seen.length + 50 : events
      while (seen.length < until) seen.push((await follower.hear()) as Seen)
      await follower.kill()
    }
    await written
    expect(await holding).toBeGreaterThan(1)
    expect(followers).toBe(4)
    const seqs = Map.groupBy(seen, ({ runId }) => runId)
    expect(seqs.size).toBe(runs)
    const ledger = openLedger(schema)
    for (const [runId, ofRun] of seqs) {
      const status = (await ledger.head(runId))?.seq ?? 0
      expect(ofRun.map(({ seq }) => seq)).toEqual(Array.from({ length: status }, (_, index) => index + 1))
    }
    const again = await Array.fromAsync(ledger.tail(), ({ cursor, event: { runId, seq } }) => ({
      cursor,
      runId,
      seq,
    }))
    expect(again).toEqual(seen)
  })
})

// Only a platform without Postgres leaves it out, and the run says so.
it.skipIf(!hasPostgres)('a look at what is due goes by its index, however many runs wait', async () => {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  const run = sampleRunId(1)
  const started = stampFacts(run, [sampleFacts(run).run_started])
  await ledger.append(run, { expectedSeq: 0, epoch: 1 }, started, { durability: 'barrier' })
  await withClient(async (client) => {
    await client.query(`insert into ${schema}.run (pos, run_id, head_seq, head_hash, epoch, seal, due_at)
      select 1000 + n, 'run ' || n, 1, 'x', 1, 'x', case when n % 2 = 0 then 9e12 + n end from generate_series(1, 20000) as n`)
    await client.query(`vacuum analyze ${schema}.run`)
    const statements = await statementsOf(async () => {
      expect(await Array.fromAsync(ledger.due({ before: 5 }))).toEqual([{ runId: run, dueAt: 0 }])
    })
    const [look] = [...statements.values()].filter(({ text }) => text.includes('due_at'))
    await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`)
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers off, costs off, timing off, summary off) ${look?.text}`,
        [...(look?.values ?? [])],
      )
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan).toMatch(/Index Scan using run_due on run .actual rows=1[. ]/)
      expect(plan).toMatch(/Index Cond: \(\(due_at > .*due_at <= /)
      expect(plan).not.toMatch(/Sort|Rows Removed/)
    }
  })
})
