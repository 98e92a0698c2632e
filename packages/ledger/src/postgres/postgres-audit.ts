import type { RunId } from '@tallystick/core'
import type { SessionPlace } from '@tallystick/core/store-kit'
import { sql } from 'kysely'
import type { AuditSource, StoredRun } from '../record/audit-source.ts'
import { digestOf } from '../content/event/stored-body.ts'
import { hashed, isNamedRight } from '../content/payload/stored-history.ts'
import { fault, type Fault } from '../record/link-check.ts'
import type { ListedRow } from '../record/run-record.ts'
import { everyRemoval } from './postgres-removable.ts'
import { eventBatches } from './read.ts'
import type { PostgresStore } from './postgres-store.ts'
import { schemaFault, schemaStatement, withoutSchema, type SchemaObject } from './schema/schema-audit.ts'
import { isRunId } from '../record/stored-ids.ts'
import type { StoreAccess } from './store-access.ts'

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** Lends the rows of a ledger to `verify`. */
export function postgresAudit(access: StoreAccess): AuditSource {
  return {
    forget: () => access.read(async ({ pieces }) => pieces.forget()),
    run: (runId) => access.read((store) => storedRun(store, runId)),
    events: (runId, toSeq) => eventBatches(access, { runId, fromSeq: 1, toSeq }),
    uses: (places) => access.read(({ contentAudit }) => contentAudit.uses(places)),
    orphans: () => access.read(orphans),
    fault: () =>
      access.read(async (store) => {
        const rows = await store.connections.patiently<SchemaObject>(schemaStatement(access.place.schema))
        return (
          schemaFault(withoutSchema(access.place, rows)) ??
          (await strayFault(store)) ??
          (await strayFactsFault(store)) ??
          (await strayEntriesFault(store)) ??
          (await tailFault(store)) ??
          (await contentFault(store)) ??
          (await historyFault(store))
        )
      }),
    removals: (runId) => access.iterate((store) => everyRemoval(store, runId)),
  }
}

/** What the store holds of a run, in one statement and so at one moment. */
async function storedRun(store: PostgresStore, runId: RunId): Promise<StoredRun | undefined> {
  if (!isRunId(runId)) return undefined
  const { tables } = store
  const events = tables.selectFrom('event').where('run_id', '=', runId)
  const [found] = await store.audit(
    tables
      .selectFrom(
        events
          .select(({ fn }) => [
            sql<number>`coalesce(sum(1 + seq - coalesce(first_seq, seq)), 0)::int8`.as('events'),
            fn.max<number | null>('seq').as('last_seq'),
          ])
          .as('extent'),
      )
      .leftJoin('run', (join) => join.on('run.run_id', '=', runId))
      .select(['events', 'last_seq', 'run_id', 'pos', 'head_seq', 'head_hash', 'epoch', 'seal'])
      .select(['session_id', 'session_place'])
      .select((is) =>
        is
          .selectFrom('fact')
          .select(sql<readonly number[]>`coalesce(json_agg(number), '[]')`.as('numbers'))
          .whereRef('fact.run', '=', 'run.pos')
          .as('facts'),
      ),
  )
  if (found === undefined || (found.run_id === null && found.events === 0)) return undefined
  const { last_seq: lastSeq, pos, head_seq: headSeq, head_hash: headHash, epoch, seal } = found
  const cell = { pos, headSeq, headHash, epoch, seal }
  const session = heldSession(found)
  return {
    events: found.events,
    lastSeq: lastSeq ?? 0,
    facts: new Set(found.facts ?? []),
    ...(isWhole(cell) && { row: { runId, ...cell, ...(session && { session }) } }),
  }
}

/** The session as the row has it, so that one of which a half is missing is not taken for none. */
function heldSession({
  session_id,
  session_place,
}: Pick<ListedRow, 'session_id' | 'session_place'>): SessionPlace | undefined {
  if (session_id === null && session_place === null) return undefined
  return { sessionId: session_id ?? '', sessionPlace: session_place ?? 0 }
}

type Cell = Pick<NonNullable<StoredRun['row']>, 'pos' | 'headSeq' | 'headHash' | 'epoch' | 'seal'>

/** Whether there is a row; its columns allow no null. */
function isWhole(cell: { readonly [Name in keyof Cell]: Cell[Name] | null }): cell is Cell {
  return Object.values(cell).every((value) => value !== null)
}

async function orphans(store: PostgresStore): Promise<readonly string[]> {
  const rows = await store.audit(
    store.tables
      .selectFrom('event')
      .select('run_id')
      .distinct()
      .where((is) =>
        is.not(is.exists(is.selectFrom('run').select('run.pos').whereRef('run.run_id', '=', 'event.run_id'))),
      )
      .limit(maxOrphans),
  )
  return rows.map(({ run_id }) => run_id)
}

/** Large contents are what their digests say, and all that events refer to are there. */
async function contentFault({ contentAudit }: PostgresStore): Promise<Fault | undefined> {
  const stray = await contentAudit.strayContents()
  if (stray > 0) return fault('content rows and their uses', 'one for the other', `${stray} without`)
  for (let after = ''; ;) {
    // One at a time, since each is large.
    const content = await contentAudit.contentAfter(after)
    if (content === undefined) return undefined
    const found = digestOf(content.body)
    if (found !== content.digest) return fault('content', content.digest, found)
    after = content.digest
  }
}

/** What runs begin with is what was written, and all of it is there. */
async function historyFault({ contentAudit }: PostgresStore): Promise<Fault | undefined> {
  const stray = await contentAudit.strayPieces()
  if (stray > 0) return fault('history rows and their uses', 'one for the other', `${stray} without`)
  for (let after = ''; ;) {
    const piece = await contentAudit.pieceAfter(after)
    if (piece === undefined) return undefined
    const { digest: found } = hashed(piece)
    if (found !== piece.digest) return fault('history', piece.digest, found)
    if (!isNamedRight(piece)) return fault('history', 'the name of what it says', piece.name)
    after = piece.name
  }
}

/** Payloads that belong to no event. */
async function strayFault(store: PostgresStore): Promise<Fault | undefined> {
  const [found] = await store.audit(
    store.tables
      .selectFrom('payload')
      .select(({ fn }) => fn.countAll<number>().as('stray'))
      .where((is) =>
        is.not(
          is.exists(is.selectFrom('event').select('event.seq').whereRef('event.pos', '=', 'payload.pos')),
        ),
      ),
  )
  return found?.stray === 0 ? undefined : fault('payload rows without an event', 0, String(found?.stray))
}

/** Facts that belong to no run. */
async function strayFactsFault(store: PostgresStore): Promise<Fault | undefined> {
  const [found] = await store.audit(
    store.tables
      .selectFrom('fact')
      .select(({ fn }) => fn.countAll<number>().as('stray'))
      .where((is) =>
        is.not(is.exists(is.selectFrom('run').select('run.pos').whereRef('run.pos', '=', 'fact.run'))),
      ),
  )
  return found?.stray === 0 ? undefined : fault('facts of no run', 0, String(found?.stray))
}

/** Inbox entries of no run, or taken at an event that their run has not got. */
async function strayEntriesFault(store: PostgresStore): Promise<Fault | undefined> {
  const [found] = await store.audit(
    store.tables
      .selectFrom('inbox')
      .select(({ fn }) => fn.countAll<number>().as('stray'))
      .where((is) =>
        is.not(
          is.exists(
            is
              .selectFrom('run')
              .select('run.pos')
              .whereRef('run.run_id', '=', 'inbox.run_id')
              .where(sql<boolean>`coalesce(inbox.taken_seq, 1) between 1 and run.head_seq`),
          ),
        ),
      ),
  )
  return found?.stray === 0 ? undefined : fault('inbox entries that fit no run', 0, String(found?.stray))
}

/**
 * Events whose transaction is older than that of the event before them in their run: a tail would yield them in front of
 * it. Numbers of another server, as after a dump was restored, order nothing.
 */
async function tailFault(store: PostgresStore): Promise<Fault | undefined> {
  const reached = sql<string>`pg_snapshot_xmax(pg_current_snapshot())`
  const [found] = await store.audit(
    store.tables
      .selectFrom('event')
      .innerJoin('event as previous', (join) =>
        join
          .onRef('previous.run_id', '=', 'event.run_id')
          .on(sql<boolean>`previous.seq = coalesce(event.first_seq, event.seq) - 1`),
      )
      .select(({ fn }) => fn.countAll<number>().as('fallen'))
      .whereRef('previous.xid', '>', 'event.xid')
      .where('previous.xid', '<', reached),
  )
  return found?.fallen === 0
    ? undefined
    : fault('xid', 'never falling within a run', `${found?.fallen} that do`)
}
