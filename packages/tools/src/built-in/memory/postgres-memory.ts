import type * as pg from 'pg'
import { option, requireOptions } from '@tallystick/core/internal'
import { pgPackage, requireConnectionString } from '../../packages.ts'
import {
  readErasedOwner,
  listIndexWords,
  mayContinue,
  type Memory,
  type MemoryOwner,
  type MemoryStore,
  type NewMemory,
  type SearchPhrases,
} from './memory-store.ts'

/** A Postgres database. */
export interface PostgresMemoryOptions {
  /** As `pg` takes it: `postgres://user:password@host:port/database`. Its tables are made where they are missing. */
  readonly connectionString: string
  /** Connections at a time; further calls wait. Default 4. */
  readonly maxConnections?: number | undefined
  /** Milliseconds that connecting and each statement may take. Default 10 000. */
  readonly timeoutMs?: number | undefined
}

const { fields, filledText, maybe, milliseconds, numberFrom } = option

const postgresMemoryOptions = fields<PostgresMemoryOptions>({
  connectionString: filledText,
  maxConnections: maybe(numberFrom(1, { whole: true })),
  timeoutMs: maybe(milliseconds),
})

/** Memories in a Postgres database, with full-text search. Needs the package pg. Connections are made when they are needed. */
export function postgresMemory(options: PostgresMemoryOptions): MemoryStore {
  requireOptions('postgresMemory', postgresMemoryOptions, options)
  requireConnectionString('postgresMemory', options.connectionString)
  pgPackage.require('postgresMemory()')
  let opening: Promise<pg.Pool> | undefined
  const pool = async (): Promise<pg.Pool> => {
    opening ??= openPool(options)
    try {
      return await opening
    } catch (error) {
      opening = undefined
      throw error
    }
  }
  const rows = async <Row extends object>(
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> => (await (await pool()).query<Row>(text, [...values])).rows
  const memories = async (text: string, values: readonly unknown[]): Promise<readonly Memory[]> =>
    (await rows<MemoryRow>(text, values)).map(toMemory)

  return {
    save: async (owner, memory) =>
      await inTransaction(await pool(), owner.owner, (client) => save(client, owner, memory)),
    savedUnder: async ({ owner }, key) =>
      (await memories(`${selected} where owner = $1 and key = $2`, [owner, key]))[0],
    remove: async ({ owner }, id, key) => {
      const [row] = await rows<{ removed: boolean }>(removal, [owner, id, key])
      return row?.removed ?? false
    },
    wasRemovedUnder: async ({ owner }, key) =>
      (await rows('select 1 from tallystick_memory where owner = $1 and removed_under = $2', [owner, key]))
        .length > 0,
    search: async ({ owner }, phrases, limit) =>
      await memories(found, [
        owner,
        matchWords(phrases),
        phrases.map((phrase) => matchWords([phrase])),
        limit,
      ]),
    list: async ({ owner }, limit, before = 2 ** 31 - 1) =>
      await memories(
        `${selected} where owner = $1 and removed_under is null and id < $2 order by id desc limit $3`,
        [owner, before, limit],
      ),
    erase: async (erased) => {
      const { owner, subject } = readErasedOwner(erased)
      const gone = await rows<{ was_kept: boolean }>(
        'delete from tallystick_memory where owner = $1 or subject = $2 returning removed_under is null as was_kept',
        [owner, subject],
      )
      return gone.filter(({ was_kept }) => was_kept).length
    },
    close: async () => {
      const open = opening
      opening = undefined
      await (await open)?.end()
    },
  }
}

type MemoryRow = Omit<Memory, 'at'> & { readonly at: string }

function toMemory({ id, text, at }: MemoryRow): Memory {
  return { id, text, at: Number(at) }
}

const selected = 'select id, text, at from tallystick_memory'

/** A memory is removed once: the second time of the same key answers as the first. */
const removal = `
  with removed as (
    update tallystick_memory set text = '', words = '', removed_under = $3
    where owner = $1 and id = $2 and removed_under is null
      and not exists (select 1 from tallystick_memory where owner = $1 and removed_under = $3)
    returning 1
  )
  select exists (select 1 from removed)
    or exists (select 1 from tallystick_memory where owner = $1 and removed_under = $3) as removed`

/** Those with more of the phrases come first. */
const found = `
  ${selected} where owner = $1 and removed_under is null and words @@ $2::tsquery
  order by (select count(*) from unnest($3::text[]) as phrase where words @@ phrase::tsquery) desc,
    ts_rank(words, $2::tsquery) desc, id desc
  limit $4`

async function save(
  client: pg.PoolClient,
  { owner, subject }: MemoryOwner,
  memory: NewMemory,
): Promise<Memory | 'full'> {
  const { key, text, at, max } = memory
  const known = await client.query<MemoryRow>(`${selected} where owner = $1 and key = $2`, [owner, key])
  if (known.rows[0]) return toMemory(known.rows[0])
  const counted = await client.query<{ kept: string; last: number }>(
    'select count(*) filter (where removed_under is null) as kept, coalesce(max(id), 0) as last from tallystick_memory where owner = $1',
    [owner],
  )
  const { kept = '0', last = 0 } = counted.rows[0] ?? {}
  if (Number(kept) >= max) return 'full'
  const id = last + 1
  await client.query(
    `insert into tallystick_memory (owner, id, key, subject, text, at, words)
     values ($1, $2, $3, $4, $5, $6, to_tsvector('simple', $7))`,
    [owner, id, key, subject ?? null, text, at, listIndexWords(text).join(' ')],
  )
  await client.query(
    'delete from tallystick_memory where owner = $1 and removed_under is not null and id < $2',
    [owner, id - 2 * max],
  )
  return { id, text, at }
}

/** Runs the work in a transaction; those of one owner take place one after the other. */
async function inTransaction<Result>(
  pool: pg.Pool,
  owner: string,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `tallystick_memory ${owner}`,
    ])
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    // A connection in the middle of a transaction is of no further use.
    failure = error as Error
    throw error
  } finally {
    client.release(failure)
  }
}

/** Words hold letters and digits only: no word of a query is part of its language. */
function matchWords(phrases: SearchPhrases): string {
  return phrases
    .map((words) => `(${words.join(' <-> ')}${mayContinue(words.at(-1) ?? '') ? ':*' : ''})`)
    .join(' | ')
}

async function openPool({
  connectionString,
  maxConnections = 4,
  timeoutMs = 10_000,
}: PostgresMemoryOptions): Promise<pg.Pool> {
  const { Pool } = await pgPackage.load('postgresMemory()')
  const pool = new Pool({
    connectionString,
    max: maxConnections,
    connectionTimeoutMillis: timeoutMs,
    statement_timeout: timeoutMs,
    query_timeout: 2 * timeoutMs,
    fallback_application_name: 'tallystick memory',
    // A pool that nothing waits for keeps no process alive.
    allowExitOnIdle: true,
  })
  // A connection that is lost while it is idle is replaced; without a listener the process would end.
  pool.on('error', () => {})
  try {
    await pool.query(schema)
    return pool
  } catch (error) {
    await pool.end()
    throw error
  }
}

/** One process at a time looks whether the tables are there, and makes them. */
const schema = `
  begin;
  select pg_advisory_xact_lock(hashtextextended('tallystick_memory schema', 0));
  create table if not exists tallystick_memory (
    owner text not null, id integer not null, key text not null, subject text, text text not null, at bigint not null,
    removed_under text, words tsvector not null, primary key (owner, id), unique (owner, key)
  );
  create index if not exists tallystick_memory_words on tallystick_memory using gin (words);
  create index if not exists tallystick_memory_removed on tallystick_memory (owner, removed_under) where removed_under is not null;
  create index if not exists tallystick_memory_subject on tallystick_memory (subject) where subject is not null;
  commit
`
