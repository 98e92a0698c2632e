import type { RunId } from '@tallystick/core'
import type { ClientBase } from 'pg'
import {
  commitTo,
  firstRemoval,
  linkRemovals,
  removalColumns,
  type RemovalLink,
  type RemovalRequest,
  type RemovalRow,
} from '../format/chain.ts'
import type { EventRow } from '../format/event-row.ts'
import { forgetTexts } from '../projection/change.ts'
import type { Batch, EndedRun, RemovableQuery } from '../store/store.ts'
import { sealText } from './append.ts'
import type { Connections } from './connections.ts'
import { postgresDialect } from './projections.ts'
import { eventColumnsText } from './records.ts'
import { inSchema } from './schema.ts'

/** A search looks at this many places at most, to stay within the time of a statement. */
const maxScanned = 65_536
const removalsPerBatch = 256

/** What is removed from a schema. */
export class PostgresRemovals {
  readonly #connections: Connections
  readonly #quotedSchema: string

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.#quotedSchema = quotedSchema
  }

  #ask<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#connections.rows<Row>({ text: inSchema(text, this.#quotedSchema), values })
  }

  after(pos: number, runId?: RunId): Promise<readonly RemovalRow[]> {
    return this.#ask(
      `select * from @.removal where pos > $1 and ($2::text is null or run_id = $2) order by pos limit ${removalsPerBatch}`,
      [pos, runId ?? null],
    )
  }

  async removable({ types, before, afterPos, limit }: RemovableQuery): Promise<Batch<EventRow>> {
    const toPos = afterPos + maxScanned
    const [found] = await this.#ask<{ last: number | null }>('select max(pos) as last from @.event', [])
    const items = await this.#ask<EventRow>(
      `select ${eventColumnsText} from @.event join @.run using (run_id)
        where event.pos > $3 and event.pos <= $5 and event.at + 0 < $2 and event.commitment is null
          and event.type || '' = any ($1::text[]) and run.ended_at is not null order by event.pos limit $4`,
      [types, before, afterPos, limit, toPos],
    )
    const last = items.at(-1)
    if (last && items.length >= limit) return { items, next: last.pos }
    return toPos < (found?.last ?? 0) ? { items, next: toPos } : { items }
  }

  async endedRuns({ before, afterPos, limit }: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>> {
    const listed = await this.#ask<EndedRun & { readonly endedAt: number | null }>(
      `select run_id as "runId", pos, head_seq as "headSeq", head_hash as "headHash", ended_at as "endedAt"
        from @.run where pos > $1 order by pos limit $2`,
      [afterPos, limit],
    )
    const items = listed.filter(({ endedAt }) => endedAt !== null && endedAt < before)
    const last = listed.at(-1)
    return last && listed.length >= limit ? { items, next: last.pos } : { items }
  }

  /** In one transaction of a connection of its own. Answers how many events lost their content. */
  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    const client = this.#connections.ownClient()
    await client.connect()
    try {
      await client.query('begin')
      const removed = await new RemovalWithin(client, this.#quotedSchema).remove(requests)
      await client.query('commit')
      return removed
    } finally {
      // A transaction that was not committed ends with its connection.
      await client.end().catch(() => undefined)
    }
  }
}

/** A removal in its transaction. */
class RemovalWithin {
  readonly #client: ClientBase
  readonly #quotedSchema: string

  constructor(client: ClientBase, quotedSchema: string) {
    this.#client = client
    this.#quotedSchema = quotedSchema
  }

  async #ask<Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.#client.query(inSchema(text, this.#quotedSchema), [...values])).rows as readonly Row[]
  }

  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    // Removals are chained, and a message that is in use a moment later must not be found unused.
    await this.#ask('lock table @.removal, @.history in share row exclusive mode')
    const present: RemovalRequest[] = []
    for (const request of requests) if (await this.#isPresent(request)) present.push(request)
    const [last] = await this.#ask<RemovalLink>('select pos, hash from @.removal order by pos desc limit 1')
    for (const row of linkRemovals(last ?? firstRemoval, present)) {
      const places = removalColumns.map((_column, index) => `$${index + 1}`)
      await this.#ask(
        `insert into @.removal (${removalColumns.join(', ')}) values (${places.join(', ')})`,
        removalColumns.map((column) => row[column]),
      )
    }
    let removed = 0
    for (const request of present) {
      if ('body' in request) {
        await this.#replaceBody(request.runId, request.seq, request.body)
        removed++
      } else removed += await this.#drop(request.runId)
    }
    for (const runId of new Set(present.map((request) => request.runId))) await this.#forget(runId)
    return removed
  }

  async #isPresent(request: RemovalRequest): Promise<boolean> {
    const { runId, seq } = request
    const rows = await ('body' in request
      ? this.#ask('select from @.event where run_id = $1 and seq = $2 and commitment is null', [runId, seq])
      : this.#ask('select from @.run where run_id = $1 for update', [runId]))
    return rows.length > 0
  }

  async #replaceBody(runId: RunId, seq: number, body: string): Promise<void> {
    const rows = await this.#ask<EventRow>(
      'select salt, body, type from @.event where run_id = $1 and seq = $2',
      [...[runId, seq]],
    )
    const { salt, body: said, type } = rows[0] as EventRow
    await this.#ask(
      'update @.event set body = $3, salt = null, commitment = $4 where run_id = $1 and seq = $2',
      [...[runId, seq, body, commitTo(salt as string, said)]],
    )
    if (type === 'history_carried' && seq === 2) await this.#releaseHistory(runId)
  }

  /** The messages that no other run begins with go. */
  async #releaseHistory(runId: RunId): Promise<void> {
    const [run] = await this.#ask<{ readonly history: string | null }>(
      'select history from @.run where run_id = $1 for update',
      [runId],
    )
    if (run?.history == null) return
    await this.#ask(
      `update @.run set history = null, seal = ${sealText({ history: `'null'` })} where run_id = $1`,
      [runId],
    )
    await this.#deleteUnused(run.history)
  }

  async #deleteUnused(name: string): Promise<void> {
    // Messages that came only before this one are unused then.
    for (let next: string | null | undefined = name; next != null;) {
      const rows: readonly { readonly before: string | null }[] = await this.#ask(
        `delete from @.history where digest = $1 and not exists (select from @.run where history = $1)
          and not exists (select from @.history as later where later.before = $1) returning before`,
        [next],
      )
      next = rows[0]?.before
    }
  }

  async #drop(runId: RunId): Promise<number> {
    await this.#ask('delete from @.inbox where run_id = $1', [runId])
    await this.#ask('delete from @.event where run_id = $1', [runId])
    const [run] = await this.#ask<{ readonly history: string | null; readonly head_seq: number }>(
      'delete from @.run where run_id = $1 returning history, head_seq',
      [runId],
    )
    if (run?.history != null) await this.#deleteUnused(run.history)
    return run?.head_seq ?? 0
  }

  /** A command that was taken says nothing any more, and what was projected from the run may hold what is gone. */
  async #forget(runId: RunId): Promise<void> {
    await this.#ask(
      `update @.inbox set command = '' where run_id = $1 and taken_seq is not null and command <> ''`,
      [runId],
    )
    for (const text of forgetTexts(postgresDialect(this.#quotedSchema), '$1')) {
      // Dropped tables of projections are made again by who reads them next.
      await this.#client.query(text, [runId])
    }
  }
}
