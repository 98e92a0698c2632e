import { RunNotFoundError, type RunId } from '@tallystick/core'
import { endedBefore, requireInboxKey, requireRunFilter, storableText } from '@tallystick/core/store-kit'
import {
  type Head,
  type InboxEntry,
  type RunFilter,
  type RunRecord,
  type TakeOverClaim,
} from '@tallystick/core/vocabulary'
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type Compilable,
} from 'kysely'
import { withDecodingContext, type DecodingSource } from '../content/event/decoded-events.ts'
import { HistoryPieceReader } from '../content/event/history-piece-reader.ts'
import { outOfOrder, type EventRow } from '../record/event-row.ts'
import { commandOf } from '../read/inbox-command.ts'
import { recordOf, type ListedRow } from '../record/run-record.ts'
import { Appender } from './write/append.ts'
import type { Connections } from './connection/connections.ts'
import type { DatabasePlace } from './connection/database-place.ts'
import type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'
import { isAfterEnd } from './connection/postgres-failure.ts'
import { PostgresRemovals } from './write/removals.ts'
import { PostgresContentAudit } from './rows/content-audit.ts'
import { PostgresSearch } from './rows/search.ts'
import { PostgresTail } from './rows/tail.ts'
import { isRunId, RunIdSieve } from '../record/stored-ids.ts'
import { isStorable } from './connection/storable-name.ts'
import { statementTexts, type StatementTexts } from './rows/statements.ts'
import type { LedgerTables } from './schema/tables.ts'

/** How many rows of runs are read at once. */
const runsPerBatch = 256

type Listed = ListedRow & { readonly pos: number }

/** The members of the port on a schema of the newest version. */
export class PostgresStore {
  readonly appender: Appender
  readonly texts: StatementTexts
  /** Builds queries; the connections carry them out. */
  readonly tables: Kysely<LedgerTables>
  readonly connections: Connections
  readonly search: PostgresSearch
  readonly removals: PostgresRemovals
  readonly contentAudit: PostgresContentAudit
  /** What runs begin with. */
  readonly pieces: HistoryPieceReader
  readonly #decoding: DecodingSource
  readonly tail: PostgresTail

  constructor(connections: Connections, place: DatabasePlace, options: PostgresLedgerOptions) {
    const { schema, quotedSchema } = place
    const removals = new PostgresRemovals(connections, quotedSchema)
    const pieces = new HistoryPieceReader(removals.histories)
    this.removals = removals
    this.pieces = pieces
    this.#decoding = {
      keyring: options.keys,
      contents: (digests) => removals.contents(digests),
      histories: (names) => pieces.pieces(names),
      removals: (runId, fromSeq, toSeq) => removals.covering(runId, fromSeq, toSeq),
    }
    this.connections = connections
    this.contentAudit = new PostgresContentAudit(connections, quotedSchema)
    this.texts = statementTexts(quotedSchema)
    this.search = new PostgresSearch(connections, quotedSchema)
    this.tail = new PostgresTail(connections, place, this.texts)
    this.appender = new Appender(connections, this.texts, removals.histories)
    this.tables = new Kysely<LedgerTables>({
      dialect: {
        createAdapter: () => new PostgresAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (database) => new PostgresIntrospector(database),
        createQueryCompiler: () => new PostgresQueryCompiler(),
      },
    }).withSchema(schema)
  }

  /** Rows of events, each with what it needs to be read. */
  withDecoding<Row extends EventRow>(rows: readonly Row[]): Promise<readonly Row[]> {
    return withDecodingContext(rows, this.#decoding)
  }

  /** The first event of a run that still has its payload. */
  async firstRow(runId: RunId): Promise<EventRow | undefined> {
    if (!isRunId(runId)) return undefined
    const [row] = await this.connections.rows<EventRow>({
      name: 'tallystick first row',
      text: this.texts.firstRow,
      values: [runId],
    })
    return row
  }

  /** The rows of a query that Kysely builds. */
  ask<Row>(query: Compilable<Row>): Promise<readonly Row[]> {
    const { sql: text, parameters: values } = query.compile()
    return this.connections.rows<Row>({ text, values })
  }

  /** The rows of a query that may go through all there is. */
  audit<Row>(query: Compilable<Row>): Promise<readonly Row[]> {
    const { sql: text, parameters: values } = query.compile()
    return this.connections.patiently<Row>({ text, values })
  }

  async head(runId: RunId): Promise<Head | undefined> {
    if (!isRunId(runId)) return undefined
    const [row] = await this.connections.rows<{ readonly head_seq: number; readonly epoch: number }>({
      name: 'tallystick run',
      text: this.texts.run,
      values: [runId],
    })
    return row && { seq: row.head_seq, epoch: row.epoch }
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    if (!isRunId(runId)) return Promise.reject(new RunNotFoundError(runId))
    return this.appender.acquire(runId, claim)
  }

  async *runs(filter: RunFilter = {}): AsyncGenerator<RunRecord> {
    requireRunFilter(filter)
    let { limit: left = Infinity } = filter
    if (filter.sessionId !== undefined && !isStorable(filter.sessionId)) return
    let before = await this.#startOf(filter)
    const sieve = new RunIdSieve()
    while (left > 0) {
      const asked = Math.min(runsPerBatch, Math.ceil(left))
      const batch = await this.ask(this.#batchBefore(before, filter.sessionId).limit(asked))
      for (const row of batch) {
        const place = placeOf(row, filter)
        // An index that is out of order would have the same batch listed for ever.
        if (place === undefined || place >= before) throw outOfOrder('its runs')
        before = place
        if (!sieve.keeps(row.run_id)) continue
        left -= 1
        yield recordOf(row)
      }
      if (batch.length < asked) return sieve.end()
    }
  }

  /** Whether the key is new. */
  async put(runId: RunId, { key, command, at }: InboxEntry): Promise<boolean> {
    requireInboxKey(key)
    const body = Buffer.from(storableText(command, `The command under ${key} for run ${runId}`))
    if (!isRunId(runId)) throw new RunNotFoundError(runId)
    const statement = {
      name: 'tallystick put',
      text: this.texts.put,
      values: [runId, key, command.type, body, at],
    }
    const { rows, wasResent } = await this.connections
      .send<{ runs: number; entries: number }>(statement)
      .catch((error: unknown) => {
        throw isAfterEnd(error) ? endedBefore(runId) : error
      })
    if (rows[0]?.runs !== 1) throw new RunNotFoundError(runId)
    // If the answer to the first try was lost, its own entry may refuse the second.
    return rows[0].entries === 1 || (wasResent && (await this.#holds(runId, key, body, at)))
  }

  async inbox(runId: RunId): Promise<readonly InboxEntry[]> {
    if (!isRunId(runId)) return []
    const rows = await this.connections.rows<{ key: string; body: Uint8Array; at: number }>({
      name: 'tallystick inbox',
      text: this.texts.inbox,
      values: [runId],
    })
    return rows.map(({ key, body, at }) => ({ key, command: commandOf(runId, key, body), at }))
  }

  /**
   * The marks of runs: a run whose mark differs from one poll to the next has changed. Runs that are not there have no
   * mark.
   */
  async marks(runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.connections.rows<{ run_id: string; mark: string }>({
      name: 'tallystick marks',
      text: this.texts.marks,
      values: [runIds],
    })
    return new Map(rows.map(({ run_id, mark }) => [run_id, mark]))
  }

  async #holds(runId: RunId, key: string, body: Uint8Array, at: number): Promise<boolean> {
    const query = this.tables.selectFrom('inbox').select(['body', 'at'])
    const [row] = await this.ask(query.where('run_id', '=', runId).where('key', '=', key))
    return row !== undefined && row.at === at && Buffer.compare(row.body, body) === 0
  }

  /** The place in its list after which a batch begins: that of a run. */
  async #startOf(filter: RunFilter): Promise<number> {
    if (filter.before === undefined) return Number.MAX_SAFE_INTEGER
    const named = this.#listed().where('run_id', '=', filter.before)
    const [row] = isRunId(filter.before) ? await this.ask(named) : []
    const place = row && placeOf(row, filter)
    if (place === undefined) throw new RunNotFoundError(filter.before)
    return place
  }

  #batchBefore(place: number, sessionId?: string) {
    if (sessionId === undefined) return this.#listed().where('pos', '<', place).orderBy('pos', 'desc')
    return this.#listed()
      .where('session_id', '=', sessionId)
      .where('session_place', '<', place)
      .orderBy('session_place', 'desc')
  }

  #listed() {
    return this.tables
      .selectFrom('run')
      .select(['run_id', 'pos', 'head_seq', 'epoch', 'session_id', 'session_place'])
  }
}

/** Returns the sort key of a run in a list; `undefined` if the run is not in the list. */
function placeOf(row: Listed, { sessionId }: RunFilter): number | undefined {
  if (sessionId === undefined) return row.pos
  return row.session_id === sessionId ? (row.session_place ?? undefined) : undefined
}
