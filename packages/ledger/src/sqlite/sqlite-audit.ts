import BetterSqlite3, { type Database } from 'better-sqlite3'
import type { RunId } from '@tallystick/core'
import { Kysely, SqliteDialect } from 'kysely'
import type { AuditSource } from '../audit-source.ts'
import { fault, type Fault } from '../link-check.ts'
import { eventRange } from './event-page.ts'
import { migrate } from './migrate.ts'
import type { StoreAccess } from './store-access.ts'
import type { LedgerTables } from './tables.ts'

/** Runs without a row that one audit names; more are as bad as that. */
const orphansMax = 1000

/** Lends the rows of an open ledger file to `verify`. */
export function sqliteAudit(access: StoreAccess, database: Database): AuditSource {
  return {
    run: (runId) =>
      access.read((store) => {
        const run = store.reads.run.get({ runId })
        if (run === undefined) return undefined
        const { pos, head_seq, head_hash, epoch, seal } = run
        const events = countOf(database, 'select count(*) as count from event where run_id = ?', runId)
        return { runId, pos, headSeq: head_seq, headHash: head_hash, epoch, seal, events }
      }),
    events: (runId) =>
      access.iterate((store) => {
        return eventRange(store.reads, { runId, fromSeq: 1, toSeq: Number.MAX_SAFE_INTEGER })
      }),
    orphans: () =>
      access.read(() => {
        const ids = database.prepare<[number], { run_id: string }>(orphanQuery).all(orphansMax)
        return ids.map(({ run_id }) => run_id as RunId)
      }),
    fault: async () => {
      const rules = await schemaAsMade()
      return access.read(() => pageFault(database) ?? numberingFault(database) ?? ruleFault(database, rules))
    },
  }
}

const orphanQuery =
  'select distinct run_id from event where not exists (select 1 from run where run.run_id = event.run_id) limit ?'

function countOf(database: Database, query: string, ...parameters: readonly string[]): number {
  return database.prepare<unknown[], { count: number }>(query).get(...parameters)?.count ?? 0
}

/** Pages that are broken, and indexes that do not say what their tables say. */
function pageFault(database: Database): Fault | undefined {
  const [first] = database.pragma('integrity_check(1)') as readonly { readonly integrity_check: string }[]
  const found = first?.integrity_check ?? 'no answer'
  return found === 'ok' ? undefined : fault('pages', 'ok', found)
}

/** Places are given without gaps and never again, so what was removed leaves a hole. */
function numberingFault(database: Database): Fault | undefined {
  const given = countOf(
    database,
    `select coalesce(max(seq), 0) as count from sqlite_sequence where name = 'event'`,
  )
  const present = countOf(
    database,
    'select count(*) as count from event where pos between 1 and ?',
    String(given),
  )
  const all = countOf(database, 'select count(*) as count from event')
  if (present !== given || all !== given) return fault('event rows', given, all === given ? present : all)
  const stray = countOf(
    database,
    'select count(*) as count from payload where not exists (select 1 from event where event.pos = payload.pos)',
  )
  return stray === 0 ? undefined : fault('payload rows without an event', 0, stray)
}

/** Tables, indexes and triggers that are not as the migrations make them: without them nothing is append-only. */
function ruleFault(database: Database, rules: ReadonlyMap<string, string>): Fault | undefined {
  const present = schemaOf(database)
  for (const [name, sql] of rules) {
    const found = present.get(name)
    if (found !== sql)
      return fault(name, 'as its migration makes it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find((name) => name.startsWith('trigger') && !rules.has(name))
  return added === undefined ? undefined : fault(added, 'no such trigger', 'one that was added')
}

async function schemaAsMade(): Promise<ReadonlyMap<string, string>> {
  const database = new BetterSqlite3(':memory:')
  try {
    await migrate(database, new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) }))
    return schemaOf(database)
  } finally {
    database.close()
  }
}

function schemaOf(database: Database): ReadonlyMap<string, string> {
  const rows = database
    .prepare<[], { type: string; name: string; sql: string }>(
      'select type, name, sql from sqlite_schema where sql is not null',
    )
    .all()
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]))
}
