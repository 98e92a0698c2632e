import type { Client } from 'pg'
import {
  hashed,
  type HashedPiece,
  type HistoryPiece,
  type StoredHistory,
} from '../../content/payload/stored-history.ts'
import type { Connections } from '../connection/connections.ts'

/** How many names are asked for at first; a run adds little to what is stored. */
const namesAtFirst = 16

/** What an event begins a run with: a name, and the piece that the store has not got yet. */
export interface BegunHistory {
  readonly name: string
  readonly piece?: HashedPiece
}

/** What runs begin with, in a schema. */
export class PostgresHistories {
  readonly #connections: Connections
  readonly #texts: ReturnType<typeof textsOf>

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.#texts = textsOf(quotedSchema)
  }

  /**
   * Returns the part of a history that has to be written, as of now: another writer may remove the pieces before it
   * at any moment.
   */
  async begun(history: StoredHistory): Promise<BegunHistory> {
    const { name, length } = history
    const shared = await this.#sharedLength(history)
    return { name, ...(shared < length && { piece: hashed(history.piece(shared)) }) }
  }

  async #sharedLength(history: StoredHistory): Promise<number> {
    for (let [end, count] = [history.length, namesAtFirst]; end > 0; end -= count, count *= 16) {
      const names = Array.from({ length: Math.min(count, end) }, (_, index) => history.nameOf(end - index))
      const found = await this.#connections.rows<{ name: string }>({
        text: this.#texts.there,
        values: [names],
      })
      const there = new Set(found.map(({ name }) => name))
      const place = names.findIndex((name) => there.has(name))
      if (place >= 0) return end - place
    }
    return 0
  }

  async piece(name: string): Promise<HistoryPiece | undefined> {
    const [piece] = await this.#connections.rows<HistoryPiece>({ text: this.#texts.piece, values: [name] })
    return piece
  }

  /** The piece under a name, and all pieces before it. */
  chain(name: string): Promise<readonly HistoryPiece[]> {
    return this.#connections.rows<HistoryPiece>({ text: this.#texts.chain, values: [name] })
  }

  /** Within the transaction that takes payloads of a run away, after it. */
  async release(
    client: Client,
    range: readonly [runId: string, fromSeq: number, toSeq: number],
  ): Promise<void> {
    const { deleteUses, deleteUnused } = this.#texts
    const { rows } = await client.query<{ name: string }>(deleteUses, [...range])
    let names: readonly (string | null)[] = rows.map(({ name }) => name)
    // Pieces that came only before them are unused now.
    while (names.length > 0) {
      const gone = await client.query<{ before: string | null }>(deleteUnused, [names])
      names = gone.rows.flatMap(({ before }) => before ?? [])
    }
  }
}

function textsOf(schema: string) {
  const places = `select pos from ${schema}.event where run_id = $1 and seq >= $2 and seq <= $3`
  const history = `${schema}.history`
  const isUsed = `exists (select from ${schema}.history_use where history_use.name = history.name)
      or exists (select from ${history} as later where later.before = history.name)`
  return {
    there: `select name from ${history} where name = any ($1::text[])`,
    piece: `select name, before, body from ${history} where name = $1`,
    // A union takes each piece once, so that damaged rows which go round in a circle come to an end.
    chain: `with recursive chain (name, before) as (
        select name, before from ${history} where name = $1
        union select history.name, history.before from chain join ${history} on history.name = chain.before
      ) select history.name, history.before, history.body from chain join ${history} using (name)`,
    deleteUses: `delete from ${schema}.history_use where pos in (${places}) returning name`,
    deleteUnused: `delete from ${history} where name = any ($1::text[]) and not (${isUsed}) returning before`,
  }
}
