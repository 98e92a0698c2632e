import { LedgerUnavailableError, type RunId } from '@tallystick/core'
import { isStorableName } from '@tallystick/core/store-kit'
import { runIdOfCall } from '@tallystick/core/vocabulary'
import { isRunId } from '../format/event-row.ts'
import {
  isTimed,
  toBatch,
  type AskedEvents,
  type Cursor,
  type FoundBatch,
  type FoundRow,
  type SearchedRun,
  type SearchSource,
} from '../store/find-events.ts'
import { rareType } from '../store/store.ts'
import type { BegunTail, TailBatch, TailPlace, TailRow, TailStart } from '../store/tail-events.ts'
import type { Connections } from './connections.ts'
import type { DatabasePlace, OpenTransaction, TailHorizon } from './options.ts'
import { boundedText, eventColumnsText, isFull, rowsPerBatch, type PostgresRecords } from './records.ts'
import { inSchema } from './schema.ts'

/** A batch looks at this many events at most, so that a search for what is rare stays within the time of a statement. */
const maxScanned = 65_536

/** Below it no transaction is under way: what has ended is seen, and nothing comes there any more. */
export const horizon = 'pg_snapshot_xmin(pg_current_snapshot())'

/**
 * Whether every commit that this statement sees is on the disk. What replays the log of another server sees nothing
 * else; where standbys have to follow, only a commit that waits for them can tell.
 */
const isDurable = `case when pg_is_in_recovery() then true else current_setting('synchronous_standby_names') = ''
  and pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn() end`

interface RunPlace {
  readonly run_id: string
  readonly pos: number
  readonly head_seq: number
}

interface Beginning {
  /** Below it no transaction is under way. */
  readonly horizon: string
  readonly run_id: string | null
  readonly hash: string | null
  readonly is_dropped: boolean
  readonly is_more: boolean
  readonly is_held_back: boolean
  readonly is_foreign: boolean
  readonly is_durable: boolean
}

/** The beginning of a tail, and whether there are events that it does not reach yet. */
export interface BegunPostgresTail extends BegunTail {
  readonly isHeldBack: boolean
}

/**
 * What searches and tails ask of the schema. Transactions get their numbers when they first write, and end in any order; so
 * the events of a tail are ordered by (xid, pos), and it goes up to the lowest number that is under way. After that
 * everything is as it will ever be.
 */
export class PostgresSearch {
  readonly #connections: Connections
  readonly #records: PostgresRecords
  readonly #place: DatabasePlace

  constructor(connections: Connections, records: PostgresRecords, place: DatabasePlace) {
    this.#connections = connections
    this.#records = records
    this.#place = place
  }

  #ask<Row>(name: string, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#connections.rows<Row>({
      name: `tallystick ${name}`,
      text: inSchema(text, this.#place.quotedSchema),
      values,
    })
  }

  async runs({ runId, sessionId, toolCallId }: AskedEvents): Promise<readonly SearchedRun[]> {
    // What Postgres cannot hold names nothing that is there.
    if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
    const named = 'where ($1::text is null or run.run_id = $1) and ($2::text is null or run.session_id = $2)'
    const listed = 'select run.run_id, run.pos, run.head_seq from'
    const values = [runId ?? null, sessionId ?? null]
    const rows =
      toolCallId === null
        ? await this.#ask<RunPlace>('searched', `${listed} @.run ${named}`, values)
        : await this.#ask<RunPlace>(
            'called',
            `with called as materialized (select run_id from @.event where tool_call_id = $3 union select $4::text)
              ${listed} called join @.run on run.run_id = called.run_id ${named}`,
            [...values, toolCallId, runIdOfCall(toolCallId) ?? ''],
          )
    return rows.flatMap(({ run_id, pos, head_seq }) =>
      isRunId(run_id) ? [{ runId: run_id, pos, headSeq: head_seq }] : [],
    )
  }

  async places(
    asked: AskedEvents,
  ): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
    const [row] = isTimed(asked)
      ? await this.#ask<{ first: number | null; last: number | null }>(
          'places at',
          'select min(pos) as first, max(pos) as last from (select pos + 0 as pos from @.event where at >= $1 and at <= $2) as timed',
          [asked.fromAt, asked.toAt],
        )
      : await this.#ask<{ first: number | null; last: number | null }>(
          'places',
          'select min(pos) as first, max(pos) as last from @.event',
          [],
        )
    const { first, last } = row ?? {}
    return first != null && last != null ? { fromPos: first, toPos: last } : undefined
  }

  async batch(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch> {
    const scanned = scannedTo(source, after)
    const types =
      ((source.by === 'run' ? source.types : undefined) ?? asked.types)?.filter(isStorableName) ?? null
    const [order, from, to] =
      source.by === 'place' ? ['pos', after.pos, scanned.pos] : ['seq', after.seq, scanned.seq]
    const [fromSeq, toSeq] =
      source.by === 'turn' ? await this.#seqsOf(source.run, source.turn) : [0, Infinity]
    const values = [
      ...[asked.fromAt, asked.toAt, source.by === 'turn' ? source.turn : asked.turn, types],
      ...[Math.max(from, fromSeq), Math.min(to, toSeq)],
      ...keysOf(asked, source),
    ]
    const rows = await this.#ask<FoundRow>(
      `find by ${source.by}`,
      batchText(source.by, order as 'pos' | 'seq'),
      values,
    )
    return toBatch(rows, isFull(rows), source, scanned)
  }

  /** The events before and of a turn: turns never fall from one event to the next. */
  async #seqsOf({ runId, headSeq }: SearchedRun, turn: number): Promise<readonly [number, number]> {
    const first = await this.#firstOfTurn(runId, headSeq, turn)
    return [first - 1, (await this.#firstOfTurn(runId, headSeq, turn + 1)) - 1]
  }

  /** The number of the first event of a turn or a later one; one more than the head if the run has none. */
  async #firstOfTurn(runId: RunId, headSeq: number, turn: number): Promise<number> {
    let [from, to] = [1, headSeq + 1]
    while (from < to) {
      const middle = Math.floor((from + to) / 2)
      const text = 'select turn from @.event where run_id = $1 and seq = $2'
      const [row] = await this.#ask<{ readonly turn: number }>('turn', text, [runId, middle])
      if (row === undefined || row.turn >= turn) to = middle
      else from = middle + 1
    }
    return from
  }

  async beginTail(start: TailStart): Promise<BegunPostgresTail> {
    const text = `select ${horizon} as horizon, named.run_id, named.hash,
      exists (select from @.removal where run_id = $3::text and kind = 'dropped') as is_dropped,
      exists (select from @.event where (xid, pos) > ($1::xid8, $2::int8) and xid < ${horizon}) as is_more,
      exists (select from @.event where xid >= ${horizon}) as is_held_back,
      exists (select from @.event where xid >= pg_snapshot_xmax(pg_current_snapshot())) as is_foreign,
      ${isDurable} as is_durable
      from (select) as one left join (
        select run_id, hash from @.event where xid = $1::xid8 and pos = $2::int8
      ) as named on true`
    // What Postgres cannot hold is no run that is here.
    const runId = isStorableName(start.runId) ? start.runId : ''
    const [begun] = await this.#ask<Beginning>('tail', text, [start.xid, start.pos, runId])
    if (begun === undefined) throw new Error('A statement that returns one row returned none.')
    if (begun.is_foreign) throw this.#foreign()
    // A reader continues after the last event it saw, so a crash of the server must not lose that event.
    if (begun.is_more && !begun.is_durable) await this.#records.harden()
    const { run_id, hash } = begun
    return {
      atCursor: run_id !== null && hash !== null ? { runId: run_id, hash } : undefined,
      isDropped: begun.is_dropped,
      isHeldBack: begun.is_held_back,
      batch: async (after) =>
        begun.is_more ? await this.#tailBatch(after, begun.horizon) : { rows: [], isLast: true },
    }
  }

  async #tailBatch({ xid, pos }: TailPlace, end: string): Promise<TailBatch> {
    const chosen = boundedText(
      `select ${eventColumnsText}, event.xid from @.event where (event.xid, event.pos) > ($1::xid8, $2::int8)
        and event.xid < $3::xid8 order by event.xid, event.pos limit ${rowsPerBatch}`,
      'xid, pos',
    )
    const rows = await this.#ask<TailRow>('tail page', withPrevious(chosen, 'event.xid, event.pos'), [
      xid,
      pos,
      end,
    ])
    return { rows, isLast: !isFull(rows) }
  }

  /** What differs from one look to the next has changed for a tail or in an inbox. */
  async mark(): Promise<{ readonly mark: string; readonly isHeldBack: boolean }> {
    const text = `select coalesce(
        (select xid || ' ' || pos from @.event where xid < ${horizon} order by xid desc, pos desc limit 1), ''
      ) || ' ' || coalesce((select max(pos) from @.inbox), 0) as mark,
      exists (select from @.event where xid >= ${horizon}) as is_held_back`
    const [row] = await this.#ask<{ readonly mark: string; readonly is_held_back: boolean }>('mark', text, [])
    return { mark: row?.mark ?? '', isHeldBack: row?.is_held_back ?? false }
  }

  #foreign(): LedgerUnavailableError {
    return new LedgerUnavailableError(
      `The ledger at ${this.#place.description} came from another server, as by a restored dump: its events name ` +
        'transactions that this server has not reached, so their order of commit is unknown, and a tail ' +
        'would leave events out. Everything else works. Let the owner number them anew, as src/postgres/README.md of ' +
        '@tallystick/ledger says under "The order of a tail", and begin the tail without a cursor.',
    )
  }
}

/** How far a batch looks. The indexes by type and call pass over nothing, and the events of a turn are searched at once. */
function scannedTo(source: SearchSource, { pos, seq }: Cursor): Cursor {
  if (source.by === 'place') return { pos: Math.min(pos + maxScanned, source.toPos), seq }
  const { headSeq } = source.run
  return { pos, seq: source.by === 'run' ? Math.min(seq + maxScanned, headSeq) : headSeq }
}

/** The run of a source, and the type or the call. */
function keysOf({ toolCallId }: AskedEvents, source: SearchSource): readonly unknown[] {
  if (source.by === 'place') return []
  const { runId } = source.run
  if (source.by === 'type') return [runId, source.type]
  return source.by === 'call' ? [runId, toolCallId] : [runId]
}

const wheres: Readonly<Record<SearchSource['by'], string>> = {
  run: 'event.run_id = $7',
  turn: 'event.run_id = $7',
  type: `event.run_id = $7 and event.type = $8 and event.${rareType}`,
  call: 'event.run_id = $7 and event.tool_call_id = $8',
  place: 'true',
}

/** The filters that no source applies, in a form that tempts no planner to another index. */
const passes = `event.at + 0 >= $1 and event.at + 0 <= $2
  and ($3::int8 is null or event.turn + 0 = $3)
  and ($4::text[] is null or event.type || '' = any ($4))`

function batchText(by: SearchSource['by'], order: 'pos' | 'seq'): string {
  const chosen = boundedText(
    `select ${eventColumnsText} from @.event
      where ${wheres[by]} and event.${order} > $5::int8 and event.${order} <= $6::int8 and ${passes}
      order by event.${order} limit ${rowsPerBatch}`,
    order,
  )
  return withPrevious(chosen, `event.${order}`)
}

/** Each event with the link that it is chained to. */
function withPrevious(chosen: string, order: string): string {
  return `select event.*, previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from (${chosen}) as event left join @.event as previous
      on previous.run_id = event.run_id and previous.seq = event.seq - 1 order by ${order}`
}

type OldestRow = {
  readonly [Name in keyof Required<OpenTransaction>]: Required<OpenTransaction>[Name] | null
} & {
  readonly waitingEvents: number
}

/** Looks at the horizon of a schema, whose name is quoted already. */
export async function tailHorizon(connections: Connections, quotedSchema: string): Promise<TailHorizon> {
  const text = inSchema(horizonText, quotedSchema)
  const [row] = await connections.rows<OldestRow>({ text, values: [] })
  if (row === undefined) throw new Error('A statement that returns one row returned none.')
  const { waitingEvents, pid, database, applicationName, state, ageMs } = row
  if (database === null) return { waitingEvents }
  const seen = {
    ...(pid !== null && { pid }),
    ...(state !== null && { state }),
    ...(ageMs !== null && { ageMs }),
  }
  return { waitingEvents, oldest: { database, applicationName: applicationName ?? '', ...seen } }
}

const ageOf = (begun: string): string => `(extract(epoch from clock_timestamp() - ${begun}) * 1000)::float8`

const horizonText = `select waiting.events as "waitingEvents", oldest.*
    from (select count(*) as events from @.event where xid >= ${horizon}) as waiting
    left join lateral (
      select pid, coalesce(datname::text, '') as database, application_name as "applicationName", state,
        ${ageOf('xact_start')} as "ageMs"
      from pg_catalog.pg_stat_activity where backend_xid = ${horizon}::xid
      union all
      select null, database::text, gid, 'prepared', ${ageOf('prepared')}
      from pg_catalog.pg_prepared_xacts where transaction = ${horizon}::xid
    ) as oldest on true limit 1`
