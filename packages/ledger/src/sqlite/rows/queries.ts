import type { Database } from 'better-sqlite3'
import { sql, type Insertable, type Kysely, type Selectable } from 'kysely'
import type { SessionPlace } from '@tallystick/core/store-kit'
import { maxEventsOfRow } from '../../record/envelope.ts'
import type { EventRange } from '../../read/checked-events.ts'
import type { EventRow } from '../../record/event-row.ts'
import { rowBytes, type JoinedRow } from './row-bytes.ts'
import { prepareFor, RowsInsert, type PreparedQuery } from './prepared-query.ts'
import type { InboxTable, PayloadTable, RunTable } from '../../record/tables.ts'
import type { EventTable, LedgerTables } from '../schema/tables.ts'

/** Names one run. */
export interface OfRun {
  readonly runId: string
}

/** What putting into an inbox and taking from it need. */
export interface InboxQueries {
  readonly inboxEntry: PreparedQuery<OfRun & { readonly key: string }, { readonly pos: number }>
  readonly put: PreparedQuery<Insertable<InboxTable>, unknown>
  readonly take: PreparedQuery<OfRun & { readonly key: string; readonly takenSeq: number }, unknown>
}

/** What an append or a take-over changes of a run's row. */
export type MovedHead = Pick<RunTable, 'run_id' | 'head_seq' | 'head_hash' | 'epoch' | 'seal'>

/** The row of a run, and the last place that was given to an event. */
type RunAndLastPlace = Selectable<RunTable> & { readonly last_place: number | null }

/** What appending, taking over and putting into an inbox need. */
export interface WriteQueries extends InboxQueries {
  readonly runAndLastPlace: PreparedQuery<OfRun, RunAndLastPlace>
  /** The same place, for a run that is not there yet. */
  readonly lastPlace: PreparedQuery<object, { readonly seq: number }>
  readonly insertEvents: RowsInsert
  readonly insertPayloads: RowsInsert
  readonly insertFacts: RowsInsert
  /** A fact of the run, if it is recorded. */
  readonly fact: PreparedQuery<{ readonly run: number; readonly number: number }, { readonly number: number }>
  /** An event of the run that states the fact that may be recorded once. */
  readonly existing: PreparedQuery<OfRun & { readonly onceKey: string }, { readonly seq: number }>
  /** A place in a session, if a run has it: its index alone says so. */
  readonly placeOfSession: PreparedQuery<SessionPlace, Pick<Selectable<RunTable>, 'session_place'>>
  readonly insertRun: PreparedQuery<RunTable, unknown>
  readonly moveHead: PreparedQuery<MovedHead, unknown>
  readonly raiseBarrier: PreparedQuery<object, unknown>
}

/** The columns of an event, in the order in which values are inserted. */
const eventValues = [
  ...(['pos', 'run_id', 'first_seq', 'seq', 'epoch', 'type', 'v', 'turn'] as const),
  ...(['tool_call_id', 'at', 'once_key', 'body_commit', 'hash'] as const),
] as const satisfies readonly (keyof EventTable)[]

/** Those of a payload. */
const payloadValues = ['pos', 'salt', 'body'] as const satisfies readonly (keyof PayloadTable)[]

/** Prepares the queries that write, and what they look up. */
export function writeQueries(database: Database, tables: Kysely<LedgerTables>): WriteQueries {
  const withSequence = tables.$extendTables<{ sqlite_sequence: { name: string; seq: number } }>()
  return {
    ...inboxQueries(database, tables),
    runAndLastPlace: prepareFor<OfRun>(database)((parameter) =>
      withSequence
        .selectFrom('run')
        .select(runColumns)
        // A join would have SQLite make an index of its own each time.
        .select((run) =>
          run.selectFrom('sqlite_sequence').select('seq').where('name', '=', 'event').as('last_place'),
        )
        .where('run_id', '=', parameter('runId')),
    ),
    lastPlace: prepareFor<object>(database)(() =>
      withSequence.selectFrom('sqlite_sequence').select('seq').where('name', '=', 'event'),
    ),
    insertEvents: new RowsInsert(database, 'event', eventValues),
    insertPayloads: new RowsInsert(database, 'payload', payloadValues),
    insertFacts: new RowsInsert(database, 'fact', ['run', 'number']),
    fact: prepareFor<{ run: number; number: number }>(database)((parameter) =>
      tables
        .selectFrom('fact')
        .select('number')
        .where('run', '=', parameter('run'))
        .where('number', '=', parameter('number')),
    ),
    existing: prepareFor<OfRun & { onceKey: string }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select('seq')
        .where('run_id', '=', parameter('runId'))
        .where('once_key', '=', parameter('onceKey')),
    ),
    placeOfSession: prepareFor<SessionPlace>(database)((parameter) =>
      tables
        .selectFrom('run')
        .select('session_place')
        .where('session_id', '=', parameter('sessionId'))
        .where('session_place', '=', parameter('sessionPlace')),
    ),
    insertRun: prepareFor<RunTable>(database)((parameter) =>
      tables.insertInto('run').values({
        run_id: parameter('run_id'),
        pos: parameter('pos'),
        head_seq: parameter('head_seq'),
        head_hash: parameter('head_hash'),
        epoch: parameter('epoch'),
        seal: parameter('seal'),
        session_id: parameter('session_id'),
        session_place: parameter('session_place'),
      }),
    ),
    moveHead: prepareFor<MovedHead>(database)((parameter) =>
      tables
        .updateTable('run')
        .set({
          head_seq: parameter('head_seq'),
          head_hash: parameter('head_hash'),
          epoch: parameter('epoch'),
          seal: parameter('seal'),
        })
        .where('run_id', '=', parameter('run_id')),
    ),
    raiseBarrier: prepareFor<object>(database)(() =>
      tables.updateTable('barrier').set((expression) => ({ count: expression('count', '+', 1) })),
    ),
  }
}

function inboxQueries(database: Database, tables: Kysely<LedgerTables>): InboxQueries {
  return {
    inboxEntry: prepareFor<OfRun & { key: string }>(database)((parameter) =>
      tables
        .selectFrom('inbox')
        .select('pos')
        .where('run_id', '=', parameter('runId'))
        .where('key', '=', parameter('key')),
    ),
    put: prepareFor<Insertable<InboxTable>>(database)((parameter) =>
      tables.insertInto('inbox').values({
        run_id: parameter('run_id'),
        key: parameter('key'),
        kind: parameter('kind'),
        body: parameter('body'),
        at: parameter('at'),
        taken_seq: parameter('taken_seq'),
      }),
    ),
    take: prepareFor<OfRun & { key: string; takenSeq: number }>(database)((parameter) =>
      tables
        .updateTable('inbox')
        .set({ taken_seq: parameter('takenSeq') })
        .where('run_id', '=', parameter('runId'))
        .where('key', '=', parameter('key'))
        .where('taken_seq', 'is', null),
    ),
  }
}

/** Up to `limit` runs of a session before a place, the last first. */
export interface SessionBatch {
  readonly sessionId: string
  readonly beforePlace: number
  readonly limit: number
}

/** What reading needs. */
export interface ReadQueries {
  readonly run: PreparedQuery<OfRun, Selectable<RunTable>>
  /** Rows that hold events of a range. */
  readonly events: PreparedQuery<EventRange, JoinedRow>
  /** The row at a place. */
  readonly eventAt: PreparedQuery<{ readonly pos: number }, EventRow>
  /** The first row of a run that still has its payload. */
  readonly firstPayload: PreparedQuery<OfRun, EventRow>
  /** Up to `limit` runs that were made before the one whose first event is at `beforePos`. */
  readonly runs: PreparedQuery<{ readonly beforePos: number; readonly limit: number }, Selectable<RunTable>>
  readonly sessionRuns: PreparedQuery<SessionBatch, Selectable<RunTable>>
  /** Entries that were not taken. */
  readonly inbox: PreparedQuery<OfRun, Pick<Selectable<InboxTable>, 'key' | 'body' | 'at'>>
}

// By name, so that a file that lacks one is found damaged where it is opened, not where the value is missed.
const runColumns = [
  ...(['run_id', 'pos', 'head_seq', 'head_hash', 'epoch', 'seal'] as const),
  ...(['session_id', 'session_place'] as const),
] as const
const plainColumns = [
  'event.pos',
  'run_id',
  'first_seq',
  'seq',
  'epoch',
  'type',
  'v',
  'turn',
  'tool_call_id',
  'at',
  'once_key',
] as const
const eventColumns = [...plainColumns, 'body_commit', 'hash', 'payload.salt', 'payload.body'] as const

/** Prepares the queries of reads. */
export function readQueries(database: Database, tables: Kysely<LedgerTables>): ReadQueries {
  return {
    run: prepareFor<OfRun>(database)((parameter) =>
      tables.selectFrom('run').select(runColumns).where('run_id', '=', parameter('runId')),
    ),
    events: prepareFor<EventRange>(database)((parameter) =>
      tables
        .selectFrom('event')
        .leftJoin('payload', 'payload.pos', 'event.pos')
        .select([...plainColumns, sql<Uint8Array | null>`${sql.raw(rowBytes)}`.as('bytes')])
        .where('run_id', '=', parameter('runId'))
        .where('seq', '>=', parameter('fromSeq'))
        // The row that holds the last event of the range may hold others after it.
        .where('seq', '<', sql<number>`${parameter('toSeq')} + ${sql.lit(maxEventsOfRow)}`)
        .where(({ fn }) => fn.coalesce('first_seq', 'seq'), '<=', parameter('toSeq'))
        .orderBy('seq'),
    ),
    eventAt: prepareFor<{ pos: number }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .leftJoin('payload', 'payload.pos', 'event.pos')
        .select(eventColumns)
        .where('event.pos', '=', parameter('pos')),
    ),
    firstPayload: prepareFor<OfRun>(database)((parameter) =>
      tables
        .selectFrom('event')
        .innerJoin('payload', 'payload.pos', 'event.pos')
        .select(eventColumns)
        .where('run_id', '=', parameter('runId'))
        .orderBy('seq')
        .limit(1),
    ),
    runs: prepareFor<{ beforePos: number; limit: number }>(database)((parameter) =>
      tables
        .selectFrom('run')
        .select(runColumns)
        .where('pos', '<', parameter('beforePos'))
        .orderBy('pos', 'desc')
        .limit(parameter('limit')),
    ),
    sessionRuns: prepareFor<SessionBatch>(database)((parameter) =>
      tables
        .selectFrom('run')
        .select(runColumns)
        .where('session_id', '=', parameter('sessionId'))
        .where('session_place', '<', parameter('beforePlace'))
        .orderBy('session_place', 'desc')
        .limit(parameter('limit')),
    ),
    inbox: prepareFor<OfRun>(database)((parameter) =>
      tables
        .selectFrom('inbox')
        .select(['key', 'body', 'at'])
        .where('run_id', '=', parameter('runId'))
        .where('taken_seq', 'is', null)
        .orderBy('pos'),
    ),
  }
}
