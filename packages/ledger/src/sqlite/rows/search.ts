import { type RunId } from '@tallystick/core'
import { isStorableName } from '@tallystick/core/store-kit'
import { runIdOfCall } from '@tallystick/core/vocabulary'
import type { Database } from 'better-sqlite3'
import type { Kysely, Selectable } from 'kysely'
import {
  isTimed,
  lastRowAt,
  rowTypesOf,
  batchOf,
  type AskedEvents,
  type Cursor,
  type FoundBatch,
  type FoundRow,
  type SearchedRun,
  type SearchSource,
} from '../../read/event-search.ts'
import type { RowAtCursor } from '../../read/tail-events.ts'
import { eventsIn, outOfOrder } from '../../record/event-row.ts'
import { bytesPerBatch, eventsPerBatch } from './event-batch.ts'
import type { ReadQueries } from './queries.ts'
import { partedRow } from './row-bytes.ts'
import { runRow, soundRow } from './run-row.ts'
import { searchQueries, type FoundJoinedRow, type SearchInput, type SearchQueries } from './search-queries.ts'
import { isRunId } from '../../record/stored-ids.ts'
import type { RunTable } from '../../record/tables.ts'
import type { LedgerTables } from '../schema/tables.ts'

/** A batch looks at this many events at most, so that a search for what is rare gives others their turn. */
const maxScanned = 8192

/** What a search asks of an open store. All of it is synchronous. */
export class SqliteSearch {
  readonly #reads: ReadQueries
  readonly #queries: SearchQueries

  constructor(database: Database, tables: Kysely<LedgerTables>, reads: ReadQueries) {
    this.#reads = reads
    this.#queries = searchQueries(database, tables)
  }

  runs({ runId, sessionId, toolCallId }: AskedEvents): readonly SearchedRun[] {
    if (![runId, sessionId, toolCallId].every((name) => isStorableName(name ?? ''))) return []
    const rows =
      toolCallId === null ? this.#named(runId, sessionId) : this.#withCall(toolCallId, runId, sessionId)
    return rows.flatMap(({ run_id, pos, head_seq }) => {
      return isRunId(run_id) ? [{ runId: run_id, pos, headSeq: head_seq }] : []
    })
  }

  places(asked: AskedEvents): { readonly fromPos: number; readonly toPos: number } | undefined {
    const found = isTimed(asked)
      ? this.#queries.placesAt.get({ fromAt: asked.fromAt, toAt: lastRowAt(asked) })
      : this.#queries.places.get({})
    const { fromPos, toPos } = found ?? {}
    return fromPos != null && toPos != null ? { fromPos, toPos } : undefined
  }

  batch(asked: AskedEvents, source: SearchSource, after: Cursor): FoundBatch {
    const within = source.by === 'turn' ? this.#turnOf(source.run, source.turn, after) : undefined
    const scanned = scannedTo(source, after)
    const rows: FoundRow[] = []
    let bytes = 0
    const input = { ...inputOf(asked, source, after, scanned), ...within }
    for (const joined of this.#queries[source.by === 'turn' ? 'run' : source.by].iterate(input)) {
      const row = this.#parted(joined)
      rows.push(row)
      bytes += row.body?.length ?? 0
      if (rows.length === eventsPerBatch || bytes >= bytesPerBatch)
        return batchOf(rows, true, source, scanned)
    }
    return batchOf(rows, false, source, scanned)
  }

  #parted(joined: FoundJoinedRow): FoundRow {
    const row = partedRow(joined, (pos) => this.#reads.eventAt.get({ pos }))
    if (row === undefined) throw outOfOrder('its events')
    const { previous_pos, previous_epoch, previous_hash } = joined
    return Object.assign(row, { previous_pos, previous_epoch, previous_hash })
  }

  /** The row at a place; `undefined` where none is. */
  rowAt(pos: number): RowAtCursor | undefined {
    const row = this.#queries.rowAt.get({ pos })
    return row && { runId: row.run_id, hash: row.hash, events: eventsIn(row) }
  }

  isDropped(runId: string): boolean {
    return this.#queries.dropped.get({ runId }) !== undefined
  }

  /** The events of a run that may be of a turn: turns never fall from one event to the next. */
  #turnOf(
    { runId, headSeq }: SearchedRun,
    turn: number,
    after: Cursor,
  ): Pick<SearchInput, 'afterSeq' | 'toSeq'> {
    const first = this.#firstOfTurn(runId, turn, headSeq)
    const next = this.#firstOfTurn(runId, turn + 1, headSeq)
    return { afterSeq: Math.max(after.seq, first - 1), toSeq: next - 1 }
  }

  /** The number of the first event of a turn or a later turn; one more than the head if the run has no such event. */
  #firstOfTurn(runId: RunId, turn: number, headSeq: number): number {
    let [from, to] = [1, headSeq + 1]
    while (from < to) {
      const middle = Math.floor((from + to) / 2)
      const row = this.#queries.turnAt.get({ runId, seq: middle })
      if (row === undefined || row.turn >= turn) to = middle
      else from = row.seq + 1
    }
    return from
  }

  #named(runId: RunId | undefined, sessionId: string | undefined): readonly Selectable<RunTable>[] {
    if (runId !== undefined) {
      const row = runRow(this.#reads, runId)
      return row && (sessionId === undefined || row.session_id === sessionId) ? [row] : []
    }
    const all = { beforePlace: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER }
    return this.#reads.sessionRuns.all({ sessionId: sessionId ?? '', ...all }).map(soundRow)
  }

  #withCall(
    toolCallId: string,
    runId: RunId | undefined,
    sessionId: string | undefined,
  ): readonly Selectable<RunTable>[] {
    const called = this.#queries.runsOfCall.all({ toolCallId }).map(({ run_id }) => run_id)
    // Rows of its own run may hold it and not say so.
    return [...new Set([...called, runIdOfCall(toolCallId)])].flatMap((run_id) => {
      const isAsked = isRunId(run_id) && (runId === undefined || run_id === runId)
      return isAsked ? this.#named(run_id, sessionId) : []
    })
  }
}

function typesOf(asked: AskedEvents, source: SearchSource): string | null {
  const types = rowTypesOf(asked, source)
  return types && JSON.stringify(types)
}

/** How far a batch looks. The indexes by type and call pass over nothing, and the events of a turn are searched at once. */
function scannedTo(source: SearchSource, { pos, seq }: Cursor): Cursor {
  if (source.by === 'place') return { pos: Math.min(pos + maxScanned, source.toPos), seq }
  const { headSeq } = source.run
  return { pos, seq: source.by === 'run' ? Math.min(seq + maxScanned, headSeq) : headSeq }
}

function inputOf(asked: AskedEvents, source: SearchSource, after: Cursor, scanned: Cursor): SearchInput {
  return {
    runId: source.by === 'place' ? '' : source.run.runId,
    type: source.by === 'type' ? source.type : '',
    turn: asked.turn,
    toolCallId: asked.toolCallId,
    types: typesOf(asked, source),
    fromAt: asked.fromAt,
    toAt: lastRowAt(asked),
    afterSeq: after.seq,
    toSeq: scanned.seq,
    afterPos: after.pos,
    toPos: scanned.pos,
  }
}
