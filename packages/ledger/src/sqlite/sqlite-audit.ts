import type { Database } from 'better-sqlite3'
import type { RunId } from '@tallystick/core'
import { Kysely, SqliteDialect } from 'kysely'
import type { AuditSource, StoredRun } from '../record/audit-source.ts'
import { fault, type Fault } from '../record/link-check.ts'
import { digestOf } from '../content/event/stored-body.ts'
import { hashed, isNamedRight } from '../content/payload/stored-history.ts'
import type { AuditQueries } from './rows/audit-queries.ts'
import { migrate } from './schema/migrate.ts'
import { eventBatches } from './read.ts'
import { cellOf, runRow } from './rows/run-row.ts'
import { everyRemoval } from './sqlite-removable.ts'
import { SqliteStore } from './sqlite-store.ts'
import type { StoreAccess } from './store-access.ts'
import type { LedgerTables } from './schema/tables.ts'
import { openSqlite } from './connection/sqlite-package.ts'

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** Lends the rows of an open ledger file to `verify`. */
export function sqliteAudit(access: StoreAccess): AuditSource {
  return {
    forget: () => access.pieces.forget(),
    run: (runId) => access.read((store) => store.atOneMoment(() => storedRun(store, runId))),
    events: (runId, toSeq) => eventBatches(access, { runId, fromSeq: 1, toSeq }),
    uses: (places) => access.read(({ contentAudit }) => contentAudit.uses(places)),
    orphans: () =>
      access.read((store) => {
        return store.audits.orphans.all({ limit: maxOrphans }).map(({ run_id }) => run_id)
      }),
    fault: async () => {
      const rules = await schemaAsMade()
      const found = await access.read((store) => {
        const { audits } = store
        return store.atOneMoment(
          () =>
            store.pageFault() ?? numberingFault(audits) ?? strayFault(audits) ?? schemaFault(audits, rules),
        )
      })
      return found ?? (await contentFault(access)) ?? (await historyFault(access))
    },
    removals: (runId) => everyRemoval(access, runId),
  }
}

/** Large contents are what their digests say, and all that events refer to are there. */
async function contentFault(access: StoreAccess): Promise<Fault | undefined> {
  const stray = await access.read(({ contentAudit }) => contentAudit.strayContents())
  if (stray > 0) return fault('content rows and their uses', 'one for the other', `${stray} without`)
  for (let after = 0; ;) {
    const from = after
    // One at a time, since each is large.
    const content = await access.read(({ contentAudit }) => contentAudit.contentAfter(from))
    if (content === undefined) return undefined
    const found = digestOf(content.body)
    if (found !== content.digest) return fault('content', content.digest, found)
    after = content.place
  }
}

/** What runs begin with is what was written, and all of it is there. */
async function historyFault(access: StoreAccess): Promise<Fault | undefined> {
  const stray = await access.read(({ contentAudit }) => contentAudit.strayPieces())
  if (stray > 0) return fault('history rows and their uses', 'one for the other', `${stray} without`)
  for (let after = ''; ;) {
    const from = after
    const piece = await access.read(({ contentAudit }) => contentAudit.pieceAfter(from))
    if (piece === undefined) return undefined
    const { digest: found } = hashed(piece)
    if (found !== piece.digest) return fault('history', piece.digest, found)
    if (!isNamedRight(piece)) return fault('history', 'the name of what it says', piece.name)
    after = piece.name
  }
}

function storedRun({ reads, audits }: SqliteStore, runId: RunId): StoredRun | undefined {
  const { events = 0, lastSeq } = audits.extent.get({ runId }) ?? {}
  const row = runRow(reads, runId)
  if (row === undefined && events === 0) return undefined
  const facts = new Set(row && audits.facts.all({ run: row.pos }).map(({ number }) => number))
  return {
    events,
    lastSeq: lastSeq ?? 0,
    facts,
    ...(row && { row: { ...cellOf(runId, row), seal: row.seal } }),
  }
}

/** Places are given without gaps and never again, so what was removed leaves a hole. */
function numberingFault({ placesGiven, events, eventsUpTo, dropped }: AuditQueries): Fault | undefined {
  const given = placesGiven.get({})?.seq ?? 0
  const due = given - (dropped.get({})?.count ?? 0)
  const all = events.get({})?.count
  const placed = eventsUpTo.get({ pos: given })?.count
  if (all !== due) return fault('event rows', due, String(all))
  if (placed !== due) return fault('event rows within the places given', due, String(placed))
  return undefined
}

/** Every payload belongs to an event, and every fact and every inbox entry to a run. */
function strayFault({ strayPayloads, strayFacts, strayEntries }: AuditQueries): Fault | undefined {
  const payloads = strayPayloads.get({})?.count ?? 0
  if (payloads > 0) return fault('payload rows without an event', 0, payloads)
  const facts = strayFacts.get({})?.count ?? 0
  if (facts > 0) return fault('facts of no run', 0, facts)
  const entries = strayEntries.get({})?.count ?? 0
  return entries === 0 ? undefined : fault('inbox entries that fit no run', 0, entries)
}

/** Tables, indexes and triggers that are not as the migrations make them: without them nothing is append-only. */
function schemaFault({ schema }: AuditQueries, rules: ReadonlyMap<string, string>): Fault | undefined {
  const present = statementsOf(schema)
  for (const [name, sql] of rules) {
    if (isProjection(name)) continue
    const found = present.get(name)
    if (found !== sql)
      return fault(name, 'as its migration makes it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find((name) => name.startsWith('trigger') && !rules.has(name))
  return added === undefined ? undefined : fault(added, 'no such trigger', 'one that was added')
}

/** What can be dropped at any time holds nothing together. */
function isProjection(name: string): boolean {
  return /^(table|index) (snapshot|projection|run_summary|run_agent|session_summary|spending)/.test(name)
}

/** What the migrations make, in a database that holds nothing else. */
async function schemaAsMade(): Promise<ReadonlyMap<string, string>> {
  const database: Database = openSqlite(':memory:')
  try {
    const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
    await migrate(database, tables)
    return statementsOf(new SqliteStore(database, tables).audits.schema)
  } finally {
    database.close()
  }
}

function statementsOf(schema: AuditQueries['schema']): ReadonlyMap<string, string> {
  return new Map(schema.all({}).map(({ type, name, sql }) => [`${type} ${name}`, sql ?? '']))
}
