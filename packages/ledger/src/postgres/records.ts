import { RunNotFoundError, type RunId } from '@tallystick/core'
import { endedBefore, isStorableName, requireRunFilter } from '@tallystick/core/store-kit'
import type { Head, Lease, LeaseClaim, RunFilter, RunRecord } from '@tallystick/core/vocabulary'
import type { RowEnvelope } from '../format/chain.ts'
import { eventColumns, type EventRow, isRunId, outOfOrder, RunIdSieve } from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import type { EventRange, InboxRow, SealedRun } from '../store/store.ts'
import { logEntry } from './append.ts'
import { type Connections, isAfterEnd } from './connections.ts'
import { durabilityText, inSchema, nowText } from './schema.ts'

/** A batch holds at most this many rows, and ends with the first that takes its bodies over this many bytes. */
export const rowsPerBatch = 512
const bytesPerBatch: number = 1024 * 1024

/** How many rows of runs are read at once. */
const runsPerBatch = 256

/** The columns of a run's row beside its lease. */
export type RunRow = SealedRun

export const runColumns =
  'pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, seal' as const

/** The columns of events, each with the name of its table. */
export const eventColumnsText: string = eventColumns.map((column) => `event.${column}`).join(', ')

/** Rows of events up to the first that takes their bodies over what a batch holds, of a query with their order. */
export function boundedText(query: string, order: string): string {
  return `select * from (
    select chosen.*, sum(octet_length(body)) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
    from (${query}) as chosen
  ) as event where coalesce(bytes_before, 0) < ${bytesPerBatch} order by ${order}`
}

/** Whether a batch may have ended before what was asked for did. */
export function isFull(rows: readonly EventRow[]): boolean {
  // In UTF-8 a character takes a byte or more: a batch that ended by its bytes has at least a third of them in characters.
  const characters = rows.reduce((sum, { body }) => sum + body.length, 0)
  return rows.length >= rowsPerBatch || 3 * characters >= bytesPerBatch
}

/** The record in a schema: what the port reads, and what it writes beside events. */
export class PostgresRecords {
  readonly #connections: Connections
  readonly #quotedSchema: string

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.#quotedSchema = quotedSchema
  }

  /** The rows of a statement, in which `@` stands for the schema. Its name lets connections keep it parsed. */
  #ask<Row>(name: string, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#connections.rows<Row>({
      name: `tallystick ${name}`,
      text: inSchema(text, this.#quotedSchema),
      values,
    })
  }

  async run(runId: RunId): Promise<RunRow | undefined> {
    if (!isRunId(runId)) return undefined
    return (await this.#ask<RunRow>('run', `select ${runColumns} from @.run where run_id = $1`, [runId]))[0]
  }

  async head(runId: RunId): Promise<Head | undefined> {
    const run = await this.run(runId)
    return run && { seq: run.head_seq, epoch: run.epoch }
  }

  async keyIdOf(runId: RunId): Promise<string | null | undefined> {
    if (!isRunId(runId)) return undefined
    const text = 'select key_id from @.event where run_id = $1 and seq = 1'
    return (await this.#ask<{ readonly key_id: string | null }>('key', text, [runId]))[0]?.key_id
  }

  async events({ runId, fromSeq, toSeq }: EventRange): Promise<readonly EventRow[]> {
    if (!isRunId(runId)) return []
    const text = boundedText(
      `select ${eventColumnsText} from @.event where run_id = $1 and seq >= $2 and seq <= $3 order by seq limit ${rowsPerBatch}`,
      'seq',
    )
    const rows = await this.#ask<EventRow>('events', text, [runId, fromSeq, toSeq])
    let last = fromSeq - 1
    for (const { seq } of rows) {
      // An index that is out of order would have the same batch read for ever.
      if (!(seq > last)) throw outOfOrder(`the events of run ${runId}`)
      last = seq
    }
    return rows
  }

  async history(name: string): Promise<HistoryRow | undefined> {
    if (!isStorableName(name)) return undefined
    const text = 'select digest, before, message from @.history where digest = $1'
    return (await this.#ask<HistoryRow>('message', text, [name]))[0]
  }

  /** Which of these messages are there. */
  async knownMessages(names: readonly string[]): Promise<ReadonlySet<string>> {
    const text = 'select digest from @.history where digest = any ($1::text[])'
    const rows = await this.#ask<{ readonly digest: string }>('messages', text, [names])
    return new Set(rows.map(({ digest }) => digest))
  }

  /** Whether a fact is on record that may be stated once. */
  async isRecorded({ tool_call_id, run_id, type, attempt }: RowEnvelope): Promise<boolean> {
    const text = 'select from @.event where tool_call_id = $1 and run_id = $2 and type = $3 and attempt = $4'
    return (await this.#ask('fact', text, [tool_call_id, run_id, type, attempt])).length > 0
  }

  /** Whether content of a run was removed. */
  async hasLost(runId: RunId): Promise<boolean> {
    if (!isRunId(runId)) return false
    return (await this.#ask('lost', 'select from @.removal where run_id = $1 limit 1', [runId])).length > 0
  }

  async *runs(filter: RunFilter = {}): AsyncGenerator<RunRecord> {
    requireRunFilter(filter)
    const { sessionId } = filter
    let { limit: left = Infinity } = filter
    if (!isStorableName(sessionId ?? '')) return
    let before = await this.#placeBefore(filter)
    const sieve = new RunIdSieve()
    while (left > 0) {
      const asked = Math.min(runsPerBatch, Math.ceil(left))
      const batch = await this.#runsBefore(before, asked, sessionId)
      for (const row of batch) {
        const place = placeIn(row, filter)
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

  #runsBefore(before: number, limit: number, sessionId?: string): Promise<readonly RunRow[]> {
    const listed = `select ${runColumns} from @.run where`
    return sessionId === undefined
      ? this.#ask('runs', `${listed} pos < $1 order by pos desc limit $2`, [before, limit])
      : this.#ask(
          'session',
          `${listed} session_id = $3 and session_place < $1 order by session_place desc limit $2`,
          [before, limit, sessionId],
        )
  }

  async #placeBefore(filter: RunFilter): Promise<number> {
    if (filter.before === undefined) return Number.MAX_SAFE_INTEGER
    const row = await this.run(filter.before)
    const place = row && placeIn(row, filter)
    if (place === undefined) throw new RunNotFoundError(filter.before)
    return place
  }

  /** Whether the key is new. */
  async put(runId: RunId, { key, command, at }: InboxRow): Promise<boolean> {
    if (!isRunId(runId)) throw new RunNotFoundError(runId)
    const text = `with known as (select run_id from @.run where run_id = $1),
      put as (
        insert into @.inbox (run_id, key, at, command) select run_id, $2::text, $3::int8, $4::text from known
        where not exists (select from @.inbox where run_id = $1 and key = $2::text)
        on conflict (run_id, key) do nothing returning pos
      )
      select (select count(*) from known) as runs, (select count(*) from put) as entries, ${durabilityText.barrier}`
    const { rows, wasResent } = await this.#connections
      .send<{ runs: number; entries: number }>({
        name: 'tallystick put',
        text: inSchema(text, this.#quotedSchema),
        values: [runId, key, at, command],
      })
      .catch((error: unknown) => {
        throw isAfterEnd(error) ? endedBefore(runId) : error
      })
    if (rows[0]?.runs !== 1) throw new RunNotFoundError(runId)
    // If the answer to the first try was lost, its own entry may refuse the second.
    return rows[0].entries === 1 || (wasResent && (await this.#holds(runId, { key, command, at })))
  }

  async #holds(runId: RunId, { key, command, at }: InboxRow): Promise<boolean> {
    const text = 'select command, at from @.inbox where run_id = $1 and key = $2'
    const [row] = await this.#ask<InboxRow>('entry', text, [runId, key])
    return row?.at === at && row.command === command
  }

  async inbox(runId: RunId): Promise<readonly InboxRow[]> {
    if (!isRunId(runId)) return []
    const text = 'select key, at, command from @.inbox where run_id = $1 and taken_seq is null order by pos'
    return await this.#ask('inbox', text, [runId])
  }

  /**
   * The marks of runs: a run whose mark differs from one poll to the next has changed. Runs that are not there have no
   * mark.
   */
  async marks(runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const text = `select run_id, head_seq || ' ' || epoch || ' ' || coalesce(
        (select max(pos) from @.inbox where inbox.run_id = run.run_id and taken_seq is null), 0) as mark
      from @.run where run_id = any ($1::text[])`
    const rows = await this.#ask<{ run_id: string; mark: string }>('marks', text, [runIds])
    return new Map(rows.map(({ run_id, mark }) => [run_id, mark]))
  }

  /** Makes every commit before it durable. */
  async harden(): Promise<void> {
    await this.#ask('harden', `select ${logEntry}, ${durabilityText.barrier}`, [])
  }

  /** Tells other processes something. */
  async tell(channel: string, payload: string): Promise<void> {
    await this.#ask('tell', `select pg_notify($1::text, $2::text), ${durabilityText.lazy}`, [
      channel,
      payload,
    ])
  }

  /** The lease of a run that lasts, by the clock of the server. */
  async lease(runId: RunId): Promise<Lease | undefined> {
    if (!isRunId(runId)) return undefined
    const text = `select lease_holder as holder, lease_until - ${nowText} as "leftMs" from @.run
      where run_id = $1 and lease_until > ${nowText}`
    const [row] = await this.#ask<Lease>('lease', text, [runId])
    return row && { holder: row.holder, leftMs: row.leftMs }
  }

  async renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): Promise<readonly RunId[]> {
    if (runIds.length === 0) return []
    const text = `update @.run set lease_until = ${nowText} + $2::int8
      where run_id = any ($3::text[]) and lease_holder = $1 returning run_id, ${durabilityText.lazy}`
    const values = [holder, Math.ceil(forMs), runIds.filter(isRunId)]
    const rows = await this.#ask<{ readonly run_id: RunId }>('renew', text, values)
    const renewed = new Set(rows.map(({ run_id }) => run_id))
    return runIds.filter((runId) => renewed.has(runId))
  }

  async release(runId: RunId, holder: string): Promise<void> {
    if (!isRunId(runId)) return
    const text = `update @.run set lease_holder = null, lease_until = null
      where run_id = $1 and lease_holder = $2 returning ${durabilityText.lazy}`
    await this.#ask('release', text, [runId, holder])
  }
}

function placeIn(row: RunRow, { sessionId }: RunFilter): number | undefined {
  if (sessionId === undefined) return row.pos
  return row.session_id === sessionId ? (row.session_place ?? undefined) : undefined
}

function recordOf({ run_id, head_seq, epoch, session_id, session_place }: RunRow): RunRecord {
  const session = session_id !== null &&
    session_place !== null && { sessionId: session_id, sessionPlace: session_place }
  return { runId: run_id as RunId, head: { seq: head_seq, epoch }, ...session }
}
