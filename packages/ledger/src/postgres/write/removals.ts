import { isRunId } from '../../record/stored-ids.ts'
import type { RunId } from '@tallystick/core'
import type { Client } from 'pg'
import { genesisHash } from '../../record/chain.ts'
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
import { PostgresHistories } from './histories.ts'
import { type Connections } from '../connection/connections.ts'

/** A search looks at this many places at most, to stay within the time of a statement. */
const maxScanned = 65_536

/** Large contents, and what is taken away, in a schema. */
export class PostgresRemovals {
  readonly histories: PostgresHistories
  readonly #connections: Connections
  readonly #texts: ReturnType<typeof textsOf>

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.#texts = textsOf(quotedSchema)
    this.histories = new PostgresHistories(connections, quotedSchema)
  }

  async contents(digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>()
    // One at a time, since each is large.
    for (const wanted of digests) {
      const rows = await this.#connections.rows<{ body: Uint8Array }>({
        text: this.#texts.content,
        values: [wanted],
      })
      if (rows[0]) found.set(wanted, rows[0].body)
    }
    return found
  }

  /** The removals that cover events of a run, both ends included. */
  async covering(runId: string, fromSeq: number, toSeq: number): Promise<readonly StoredRemoval[]> {
    const values = [runId, fromSeq, toSeq]
    return (await this.#connections.rows<RemovalRow>({ text: this.#texts.covering, values })).map(
      storedRemoval,
    )
  }

  /** Whether anything was taken away from a run. */
  async hasLost(runId: RunId): Promise<boolean> {
    if (!isRunId(runId)) return false
    return (await this.#connections.rows({ text: this.#texts.lost, values: [runId] })).length > 0
  }

  /** A batch of removals after a place, of one run where it is named. */
  async batch(afterPos: number, runId?: RunId): Promise<readonly StoredRemoval[]> {
    const values = [afterPos, runId ?? null]
    return (await this.#connections.rows<RemovalRow>({ text: this.#texts.page, values })).map(storedRemoval)
  }

  async payloads({ types, before, afterPos, limit }: RemovableQuery): Promise<Batch<EventRow>> {
    const toPos = afterPos + maxScanned
    const [found] = await this.#connections.rows<{ last: number | null }>({
      text: this.#texts.lastPayload,
      values: [],
    })
    const items = await this.#connections.rows<EventRow>({
      text: this.#texts.payloads,
      values: [types, before, afterPos, limit, toPos],
    })
    return batchOf(items, { limit, toPos, lastPos: found?.last ?? 0 })
  }

  async endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>> {
    const { afterPos, limit } = query
    const values = [afterPos, limit]
    return endedBatch(await this.#connections.rows<ListedRun>({ text: this.#texts.listed, values }), query)
  }

  /** In one transaction of a connection of its own. Answers how many events lost their payload. */
  async remove(removals: readonly Removal[]): Promise<number> {
    const client = this.#connections.ownClient()
    await client.connect()
    try {
      await client.query('begin')
      const removed = await this.#removeWithin(client, removals)
      await client.query('commit')
      return removed
    } finally {
      // A transaction that was not committed ends with its connection.
      await client.end().catch(() => undefined)
    }
  }

  async #removeWithin(client: Client, removals: readonly Removal[]): Promise<number> {
    const texts = this.#texts
    // Removals are chained, and a content that is in use a moment later must not be found unused.
    await client.query(texts.lock)
    const present: Removal[] = []
    for (const removal of removals) if (await this.#isPresent(client, removal)) present.push(removal)
    const { rows } = await client.query<{ pos: number; hash: Uint8Array }>(texts.last)
    for (const row of removalRows(rows[0] ?? { pos: 0, hash: genesisHash }, present)) {
      const { pos, run_id, from_seq, to_seq, kind, at, by, reason, kept, head_hash, hash } = row
      await client.query(texts.insert, [
        pos,
        run_id,
        from_seq,
        to_seq,
        kind,
        at,
        by,
        reason,
        kept,
        head_hash,
        hash,
      ])
    }
    let removed = 0
    for (const removal of present) removed += await this.#takeAway(client, removal)
    return removed
  }

  /** Whether everything is there that is to go. */
  async #isPresent(client: Client, { runId, fromSeq, toSeq, kind }: Removal): Promise<boolean> {
    if (kind === 'dropped') return (await client.query(this.#texts.isListed, [runId])).rowCount === 1
    const { rows } = await client.query<{ count: number }>(this.#texts.count, [runId, fromSeq, toSeq])
    let present = rows[0]?.count ?? 0
    for (const row of await this.#segmented(client, { runId, fromSeq, toSeq })) {
      present += presentEvents(row, { fromSeq, toSeq })
    }
    return present === toSeq - fromSeq + 1
  }

  async #segmented(client: Client, { runId, fromSeq, toSeq }: Asked): Promise<readonly SegmentedRow[]> {
    return (await client.query<SegmentedRow>(this.#texts.segmented, [runId, fromSeq, toSeq])).rows
  }

  /** Rows that hold others as well lose their segments within the range. */
  async #takeSegments(client: Client, range: Asked): Promise<void> {
    for (const row of await this.#segmented(client, range)) {
      const { salt, body } = withoutEvents(row, range)
      await client.query(this.#texts.replacePayload, [row.pos, salt, body])
    }
  }

  async #takeAway(client: Client, { runId, fromSeq, toSeq, kind }: Removal): Promise<number> {
    const { deletePayloads, deleteEveryPayload, deleteUses, deleteUnused } = this.#texts
    const { blankInbox, forget, dropRun } = this.#texts
    const range = [runId, fromSeq, toSeq] as const
    if (kind === 'dropped') await client.query(deleteEveryPayload, [runId])
    else await this.#takeSegments(client, { runId, fromSeq, toSeq })
    await client.query(deletePayloads, [...range])
    const { rows } = await client.query<{ digest: string }>(deleteUses, [...range])
    if (rows.length > 0) await client.query(deleteUnused, [rows.map(({ digest }) => digest)])
    await this.histories.release(client, range)
    await client.query(blankInbox, [runId])
    for (const text of forget) await client.query(text, [runId])
    if (kind === 'dropped') for (const text of dropRun) await client.query(text, [runId])
    return toSeq - fromSeq + 1
  }
}

/** Events of a run, both ends included. */
type Asked = { readonly runId: RunId; readonly fromSeq: number; readonly toSeq: number }

/** The first line of a row of segments as it is written, and nothing else: all that fits it is JSON once its brackets are closed. */
const writtenHeads = (() => {
  const text = '"[^"\\\\[:cntrl:]]*"'
  const field = `${text}:(?:${text}|0|[1-9][0-9]{0,15})`
  const head = `(?:${text}|\\{${field}(?:,${field})*\\})`
  return `^\\{(?:"key":${text},)?"heads":\\[${head}(?:,${head})*\\],"segments":\\[$`
})()

/**
 * Whether a row of segments still holds one of the types `$1`. A row whose first line is not as it is written is found, so that
 * it is refused. Postgres below 16 has no test whether a text is JSON.
 */
const holdsTypes = `(select case when line[1] ~ '${writtenHeads}' then exists (
    select from jsonb_array_elements((line[1] || ']}')::jsonb -> 'heads') with ordinality as head (value, place)
    where coalesce(head.value ->> 'type', split_part(head.value #>> '{}', ' ', 1)) = any ($1::text[])
      and rtrim(line[head.place + 1], ',') is distinct from 'null') else true end
  from string_to_array(encode(payload.body, 'escape'), chr(10)) as line)`

function textsOf(schema: string) {
  const isSegmentedRow = `event.type = 'several' and event.first_seq is not null`
  const inRange = 'event.run_id = $1 and event.seq >= $2 and event.seq <= $3'
  const places = `select pos from ${schema}.event where ${inRange}`
  return {
    content: `select body from ${schema}.content where digest = $1`,
    covering: `select * from ${schema}.removal where run_id = $1 and to_seq >= $2 and from_seq <= $3 order by to_seq`,
    lost: `select 1 from ${schema}.removal where run_id = $1 limit 1`,
    page: `select * from ${schema}.removal where pos > $1 and ($2::text is null or run_id = $2) order by pos limit ${removalsPerBatch}`,
    lock: `lock table ${schema}.removal, ${schema}.content, ${schema}.history in share row exclusive mode`,
    last: `select pos, hash from ${schema}.removal order by pos desc limit 1`,
    insert: `insert into ${schema}.removal (pos, run_id, from_seq, to_seq, kind, at, by, reason, kept, head_hash, hash)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    lastPayload: `select max(pos) as last from ${schema}.payload`,
    payloads: `select event.*, payload.salt, payload.body from ${schema}.payload join ${schema}.event using (pos)
      where payload.pos > $3 and payload.pos <= $5 and (event.at < $2 and event.type = any ($1::text[])
        or case when event.at < $2 + ${maxPackedMs} and ${isSegmentedRow} then ${holdsTypes} else false end) and exists (
        select from ${schema}.event ended where ended.run_id = event.run_id and ended.once_key = 'run_finished')
      order by payload.pos limit $4`,
    listed: `select run_id as "runId", pos, head_seq as "headSeq", head_hash as "headHash", (
        select at from ${schema}.event where event.run_id = run.run_id and once_key = 'run_finished') as "endedAt"
      from ${schema}.run where pos > $1 order by pos limit $2`,
    isListed: `select from ${schema}.run where run_id = $1`,
    count: `select coalesce(sum(1 + seq - coalesce(first_seq, seq)), 0)::int8 as count from ${schema}.event join ${schema}.payload using (pos)
      where ${inRange} and not (${isSegmentedRow})`,
    segmented: `select pos, first_seq as "firstSeq", seq, salt, body from ${schema}.event join ${schema}.payload using (pos)
      where run_id = $1 and seq >= $2 and seq < $3::int8 + ${maxEventsOfRow} and first_seq <= $3 and ${isSegmentedRow}`,
    replacePayload: `update ${schema}.payload set salt = $2, body = $3 where pos = $1`,
    deletePayloads: `delete from ${schema}.payload where pos in (${places} and not (${isSegmentedRow}))`,
    deleteEveryPayload: `delete from ${schema}.payload where pos in (select pos from ${schema}.event where run_id = $1)`,
    deleteUses: `delete from ${schema}.content_use where pos in (${places}) returning digest`,
    deleteUnused: `delete from ${schema}.content where digest = any ($1::text[])
      and not exists (select from ${schema}.content_use where content_use.digest = content.digest)`,
    blankInbox: `update ${schema}.inbox set body = '' where run_id = $1 and taken_seq is not null and length(body) > 0`,
    // What was projected from the run may hold what is gone.
    forget: forgetTexts({ table: (name) => `${schema}.${name}` }, '$1'),
    dropRun: [
      `delete from ${schema}.fact where run = (select pos from ${schema}.run where run_id = $1)`,
      ...droppedTables.map((table) => `delete from ${schema}.${table} where run_id = $1`),
    ],
  }
}
