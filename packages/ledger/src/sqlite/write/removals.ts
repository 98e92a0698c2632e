import type { RunId } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import { genesisHash } from '../../record/chain.ts'
import type { StoredContent } from '../../content/event/stored-body.ts'
import { forgetTexts } from '../../projection/tables/forget-texts.ts'
import { maxPackedMs } from '../../content/event/packed-deltas.ts'
import { presentEvents, withoutEvents, type SegmentedRow } from '../../content/event/taken-segments.ts'
import { maxEventsOfRow } from '../../record/envelope.ts'
import type { EventRow } from '../../record/event-row.ts'
import {
  endedBatch,
  batchOf,
  droppedTables,
  removalsPerBatch,
  type EndedRun,
  type ListedRun,
  type Batch,
  type RemovableQuery,
} from '../../removal/removable-store.ts'
import {
  removalRows,
  storedRemoval,
  type Removal,
  type RemovalRow,
  type StoredRemoval,
} from '../../record/removal.ts'
import { SqliteHistories } from './histories.ts'
import { preparing } from '../rows/late-statement.ts'
import { sqliteDialect } from '../rows/sqlite-dialect.ts'

/** A search looks at this many places at most, so that others get their turn. */
const maxScanned = 8192

type Range = { readonly runId: string; readonly fromSeq: number; readonly toSeq: number }

/** Large contents, and what is taken away, in an open database. All of it is synchronous. */
export class SqliteRemovals {
  readonly histories: SqliteHistories
  readonly #database: Database
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #tookAway: () => void

  /** `tookAway` is called where content was taken away, of which the log keeps copies. */
  constructor(database: Database, tookAway: () => void) {
    this.#database = database
    this.#tookAway = tookAway
    this.histories = new SqliteHistories(database)
    this.#statements = statementsOf(database)
  }

  /** To be called within the transaction that writes the event at this place. */
  keepContents(pos: number, contents: readonly StoredContent[]): void {
    const { content, insertContent, insertUse } = this.#statements
    for (const { digest, bytes } of contents) {
      if (content.get(digest) === undefined) insertContent.run(digest, bytes)
      insertUse.run(pos, digest)
    }
  }

  /** A command that was taken says nothing any more. To be called within the transaction that takes it. */
  blank(runId: RunId, key: string): void {
    this.#statements.blankTaken.run(runId, key)
    this.#tookAway()
  }

  contents(digests: readonly string[]): ReadonlyMap<string, Uint8Array> {
    const found = new Map<string, Uint8Array>()
    for (const digest of digests) {
      const body = this.#statements.content.get(digest)
      if (body) found.set(digest, body)
    }
    return found
  }

  /** The removals that cover events of a run, both ends included. */
  covering(range: Range): readonly StoredRemoval[] {
    return this.#statements.covering.all(range).map(storedRemoval)
  }

  /** Whether anything was taken away from a run. */
  hasLost(runId: RunId): boolean {
    return this.#statements.lost.get(runId) !== undefined
  }

  /** A batch of removals after a place, of one run where it is named. */
  batch(afterPos: number, runId?: RunId): readonly StoredRemoval[] {
    const rows =
      runId === undefined
        ? this.#statements.all.all({ afterPos })
        : this.#statements.ofRun.all({ afterPos, runId })
    return rows.map(storedRemoval)
  }

  payloads({ types, before, afterPos, limit }: RemovableQuery): Batch<EventRow> {
    const toPos = afterPos + maxScanned
    const asked = { types: JSON.stringify(types), before, afterPos, toPos, limit }
    const lastPos = this.#statements.lastPayload.get() ?? 0
    return batchOf(this.#statements.payloads.all(asked), { limit, toPos, lastPos })
  }

  endedRuns(query: Omit<RemovableQuery, 'types'>): Batch<EndedRun> {
    const { afterPos, limit } = query
    return endedBatch(this.#statements.listed.all({ afterPos, limit }), query)
  }

  /** To be called within a transaction. Answers how many events lost their payload. */
  remove(removals: readonly Removal[]): number {
    const present = removals.filter((removal) => this.#isPresent(removal))
    const last = this.#statements.last.get() ?? { pos: 0, hash: genesisHash }
    for (const row of removalRows(last, present)) this.#statements.insert.run(row)
    let removed = 0
    for (const removal of present) removed += this.#takeAway(removal)
    this.#tookAway()
    return removed
  }

  /** Whether everything is there that is to go. */
  #isPresent({ runId, fromSeq, toSeq, kind }: Removal): boolean {
    if (kind === 'dropped') return this.#statements.isListed.get({ runId }) !== undefined
    const range = { runId, fromSeq, toSeq }
    let present = this.#statements.count.get(range) ?? 0
    for (const row of this.#statements.segmented.all(range)) present += presentEvents(row, range)
    return present === toSeq - fromSeq + 1
  }

  #takeAway({ runId, fromSeq, toSeq, kind }: Removal): number {
    const range = { runId, fromSeq, toSeq }
    const { digests, deletePayloads, deleteEveryPayload, deleteUses, deleteUnused } = this.#statements
    const { blankInbox, forget, dropFacts, dropRun } = this.#statements
    const released = digests.all(range)
    const places = this.#statements.places.all(range)
    if (kind === 'dropped') deleteEveryPayload.run({ runId })
    else this.#takeSegments(range)
    deletePayloads.run(range)
    for (const pos of places) deleteUses.run(pos)
    this.histories.release(places)
    for (const digest of released) deleteUnused.run({ digest })
    blankInbox.run({ runId })
    for (const statement of forget()) statement.run({ runId })
    if (kind === 'dropped') for (const statement of [dropFacts, ...dropRun]) statement.run({ runId })
    return toSeq - fromSeq + 1
  }

  /** Rows that hold others as well lose their segments within the range. */
  #takeSegments(range: Range): void {
    for (const row of this.#statements.segmented.all(range)) {
      this.#statements.replacePayload.run({ pos: row.pos, ...withoutEvents(row, range) })
    }
  }

  /** Truncates the log to drop removed content. Where a reader prevents it, the log is truncated when it is done. */
  settle(): void {
    this.#database.pragma('wal_checkpoint(truncate)')
  }
}

const inRange = 'run_id = $runId and seq >= $fromSeq and seq <= $toSeq'
const isSegmentedRow = "type = 'several' and first_seq is not null"
const bodyText = 'cast(body as text)'
const typeOfHead = `case head.type when 'object' then head.value ->> '$.type'
  else substr(head.value, 1, instr(head.value || ' ', ' ') - 1) end`
/** Whether a row of segments still holds one of a type. A row whose body is damaged is found, so that it is refused. */
const holdsTypes = `case when not json_valid(${bodyText}) then true when json_type(${bodyText}, '$.heads') is not 'array' then true
  else exists (select 1 from json_each(${bodyText}, '$.heads') as head where ${typeOfHead} in (select value from json_each($types))
    and json_type(${bodyText}, '$.segments[' || head.key || ']') is not 'null') end`
const eventsInRow = '1 + seq - coalesce(first_seq, seq)'

function statementsOf(database: Database) {
  const { rows: prepare, values: pluck } = preparing(database)
  return {
    content: pluck<Buffer>('select body from content where digest = ?'),
    insertContent: prepare('insert into content (digest, body) values (?, ?)'),
    insertUse: prepare('insert into content_use (pos, digest) values (?, ?) on conflict do nothing'),
    lost: pluck<number>('select 1 from removal where run_id = ? limit 1'),
    covering: prepare<RemovalRow>(
      `select * from removal where run_id = $runId and to_seq >= $fromSeq and from_seq <= $toSeq order by to_seq`,
    ),
    all: prepare<RemovalRow>(
      `select * from removal where pos > $afterPos order by pos limit ${removalsPerBatch}`,
    ),
    ofRun: prepare<RemovalRow>(
      `select * from removal where run_id = $runId and pos > $afterPos order by pos limit ${removalsPerBatch}`,
    ),
    last: prepare<{ readonly pos: number; readonly hash: Uint8Array }>(
      'select pos, hash from removal order by pos desc limit 1',
    ),
    insert: prepare(
      `insert into removal (pos, run_id, from_seq, to_seq, kind, at, by, reason, kept, head_hash, hash)
       values ($pos, $run_id, $from_seq, $to_seq, $kind, $at, $by, $reason, $kept, $head_hash, $hash)`,
    ),
    lastPayload: pluck<number | null>('select max(pos) from payload'),
    // The plus keeps the index by time out of it: places are what the search continues by.
    payloads: prepare<EventRow>(
      `select event.*, payload.salt, payload.body from payload join event using (pos)
       where pos > $afterPos and pos <= $toPos and (+at < $before and type in (select value from json_each($types))
           or +at < $before + ${maxPackedMs} and ${isSegmentedRow} and ${holdsTypes})
         and exists (select 1 from event ended where ended.run_id = event.run_id and ended.once_key = 'run_finished')
       order by pos limit $limit`,
    ),
    listed: prepare<ListedRun>(
      `select run_id as runId, pos, head_seq as headSeq, head_hash as headHash, (
         select at from event where event.run_id = run.run_id and once_key = 'run_finished') as endedAt
       from run where pos > $afterPos order by pos limit $limit`,
    ),
    isListed: pluck<number>('select 1 from run where run_id = $runId'),
    count: pluck<number>(
      `select coalesce(sum(${eventsInRow}), 0) from event join payload using (pos)
         where ${inRange} and not (${isSegmentedRow})`,
    ),
    segmented: prepare<SegmentedRow>(
      `select pos, first_seq as firstSeq, seq, salt, body from event join payload using (pos)
         where run_id = $runId and seq >= $fromSeq and seq < $toSeq + ${maxEventsOfRow} and first_seq <= $toSeq and ${isSegmentedRow}`,
    ),
    replacePayload: prepare('update payload set salt = $salt, body = $body where pos = $pos'),
    places: pluck<number>(`select pos from event where ${inRange}`),
    digests: pluck<string>(`select distinct digest from event join content_use using (pos) where ${inRange}`),
    deletePayloads: prepare(
      `delete from payload where pos in (select pos from event where ${inRange} and not (${isSegmentedRow}))`,
    ),
    deleteEveryPayload: prepare(
      'delete from payload where pos in (select pos from event where run_id = $runId)',
    ),
    deleteUses: prepare('delete from content_use where pos = ?'),
    deleteUnused: prepare(
      'delete from content where digest = $digest and not exists (select 1 from content_use where digest = $digest)',
    ),
    blankTaken: prepare(
      `update inbox set body = x'' where run_id = ? and key = ? and taken_seq is not null and length(body) > 0`,
    ),
    blankInbox: prepare(
      `update inbox set body = x'' where run_id = $runId and taken_seq is not null and length(body) > 0`,
    ),
    // What was projected from the run may hold what is gone. Prepared when needed: those tables may be missing.
    forget: () => forgetTexts(sqliteDialect, '$runId').map((text) => prepare(text)),
    dropFacts: prepare('delete from fact where run = (select pos from run where run_id = $runId)'),
    dropRun: droppedTables.map((table) => prepare(`delete from ${table} where run_id = $runId`)),
  }
}
