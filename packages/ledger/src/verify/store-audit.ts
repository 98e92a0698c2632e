import type { Nullable, SelectQueryBuilder } from 'kysely'
import type { RunId } from '@tallystick/core'
import { firstRemoval, isRemovalIntact, type RemovalLink } from '../format/chain.ts'
import {
  type EventRow,
  createFault,
  type Fault,
  isRunId,
  createOutOfOrderError,
} from '../format/event-row.ts'
import { isHistoryRow } from '../format/history.ts'
import {
  eventColumnsText,
  type Queries,
  runColumnsText,
  type RunRow,
  type Schema,
  type StoreDatabase,
} from '../store/database.ts'
import { readRemovals, type EventRange } from '../store/records.ts'
import type { Store } from '../store/store.ts'

/* The rows of a store, unchecked, as `verify` and checkpoints read them beneath the port. */

/** A run in the store at one moment. */
export interface StoredRun {
  /** Absent if there are events and no row. */
  readonly row?: RunRow
  /** How many events there are under the id of the run. */
  readonly events: number
  readonly lastSeq: number
}

/** `undefined` if the store has nothing of the run. */
export async function readStoredRun({ ask }: StoreDatabase, runId: RunId): Promise<StoredRun | undefined> {
  if (!isRunId(runId)) return undefined
  // In one statement, and so at one moment.
  const [found] = await ask<Nullable<RunRow> & { readonly events: number; readonly last_seq: number | null }>(
    `select events, last_seq, ${runColumnsText}
      from (select count(*) as events, max(seq) as last_seq from @.event where run_id = $1) as extent
      left join @.run on run_id = $1`,
    [runId],
  )
  if (found === undefined) return undefined
  const { events, last_seq: lastSeq, ...row } = found
  if (row.run_id === null && events === 0) return undefined
  return { events, lastSeq: lastSeq ?? 0, ...(row.run_id !== null && { row: row as RunRow }) }
}

/** A row of an event, with the digest of the removal that is on record for it. */
export type AuditedRow = EventRow & { readonly removal: string | null }

/** The first rows of a range. */
export async function readAuditedRows(
  { askBatch }: StoreDatabase,
  { runId, fromSeq, toSeq }: EventRange,
): Promise<readonly AuditedRow[]> {
  if (!isRunId(runId)) return []
  const rows = await askBatch<AuditedRow>(
    `select ${eventColumnsText}, (
        select digest from @.removal as removal
        where removal.run_id = event.run_id and removal.seq = event.seq and kind <> 'dropped' limit 1
      ) as removal
      from @.event as event where run_id = $1 and seq >= $2 and seq <= $3`,
    ['seq'],
    [runId, fromSeq, toSeq],
  )
  let last = fromSeq
  for (const { seq } of rows) {
    if (seq < last) throw createOutOfOrderError(`the events of run ${runId}`)
    last = seq
  }
  return rows
}

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** Runs that have events but are in no list, such as those without a row, by the text in the column of ids. */
export async function findOrphans({ query }: StoreDatabase): Promise<readonly string[]> {
  const rows = await query(
    ({ db }) =>
      db
        .selectFrom('event')
        .select('run_id')
        .distinct()
        .where(
          'run_id',
          'not in',
          db.selectFrom('run').select('run_id').where('pos', '<', Number.MAX_SAFE_INTEGER),
        )
        .limit(maxOrphans),
    { patiently: true },
  )
  return rows.map(({ run_id }) => run_id)
}

/** The first fault of the store around its runs, and how many runs were dropped. */
export async function auditStore(
  store: Store,
): Promise<{ readonly broken?: Fault; readonly droppedRuns: number }> {
  const { database } = store
  let last: RemovalLink = firstRemoval
  let droppedRuns = 0
  // Removals are chained like events, so that none can be changed or left out unseen.
  for await (const row of readRemovals(database)) {
    if (row.pos !== last.pos + 1)
      return { broken: createFault('removal', last.pos + 1, row.pos), droppedRuns }
    if (!isRemovalIntact(last, row))
      return { broken: createFault(`removal ${row.pos}`, 'as it was written', 'another'), droppedRuns }
    if (row.kind === 'dropped') droppedRuns++
    last = row
  }
  const broken =
    (await store.findFault()) ?? (await findStrayFault(database)) ?? (await findHistoryFault(database))
  return { ...(broken && { broken }), droppedRuns }
}

type Countable = SelectQueryBuilder<Schema, keyof Schema, object>

/** Rows that should not exist, by the name of their fault. */
const strays: Readonly<Record<string, (queries: Queries) => Countable>> = {
  'inbox entries that fit no run': ({ db, sql }) =>
    db.selectFrom('inbox').where((of) =>
      of.not(
        of.exists(
          of
            .selectFrom('run')
            .select('run.pos')
            .whereRef('run.run_id', '=', 'inbox.run_id')
            .where(sql<boolean>`coalesce(inbox.taken_seq, 1) between 1 and run.head_seq`),
        ),
      ),
    ),
  'removals of no event': ({ db }) =>
    db.selectFrom('removal').where((of) => {
      const run = of.selectFrom('run').select('run.pos').whereRef('run.run_id', '=', 'removal.run_id')
      // Found once: a search for each removal of a run that was dropped would pass over all that it has.
      const dropped = of
        .selectFrom('removal as dropped')
        .select('dropped.run_id')
        .where('dropped.kind', '=', 'dropped')
      const event = of
        .selectFrom('event')
        .select('event.pos')
        .whereRef('event.run_id', '=', 'removal.run_id')
        .whereRef('event.seq', '=', 'removal.seq')
        .where('event.commitment', 'is not', null)
      return of.or([
        of('removal.pos', '<', 1),
        of.and([of('removal.kind', '=', 'dropped'), of.exists(run)]),
        of.and([
          of('removal.kind', 'not in', ['dropped', 'imported']),
          of.not(of.exists(event)),
          of('removal.run_id', 'not in', dropped),
        ]),
      ])
    }),
  'messages that no run begins with': ({ db }) =>
    db
      .selectFrom('history')
      .where('digest', 'not in', db.selectFrom('run').select('history').where('history', 'is not', null))
      .where('digest', 'not in', db.selectFrom('history').select('before').where('before', 'is not', null)),
  'runs that begin with messages that are not there': ({ db }) =>
    db
      .selectFrom('run')
      .where('history', 'is not', null)
      .where('history', 'not in', db.selectFrom('history').select('digest')),
  'messages after messages that are not there': ({ db }) =>
    db
      .selectFrom('history')
      .where('before', 'is not', null)
      .where('before', 'not in', db.selectFrom('history as earlier').select('earlier.digest')),
}

async function findStrayFault({ query }: StoreDatabase): Promise<Fault | undefined> {
  for (const [what, select] of Object.entries(strays)) {
    const [found] = await query(
      (queries) => select(queries).select(queries.sql<number>`count(*)`.as('count')),
      {
        patiently: true,
      },
    )
    if (found && found.count > 0) return createFault(what, 0, found.count)
  }
  return undefined
}

const messagesPerBatch = 256

async function findHistoryFault({ query }: StoreDatabase): Promise<Fault | undefined> {
  for (let after = ''; ;) {
    const from = after
    const rows = await query(
      ({ db }) =>
        db
          .selectFrom('history')
          .select(['digest', 'before', 'message'])
          .where('digest', '>', from)
          .orderBy('digest')
          .limit(messagesPerBatch),
      { patiently: true },
    )
    const damaged = rows.find((row) => !isHistoryRow(row))
    if (damaged) return createFault('history', 'the message of its digest', damaged.digest)
    const last = rows.at(-1)
    if (last === undefined) return undefined
    after = last.digest
  }
}
