import type { Database } from 'better-sqlite3'
import {
  hashed,
  sharedLength,
  type HistoryPiece,
  type StoredHistory,
} from '../../content/payload/stored-history.ts'
import { preparing } from '../rows/late-statement.ts'

/** What runs begin with, in an open database. All of it is synchronous. */
export class SqliteHistories {
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database) {
    this.#statements = statementsOf(database)
  }

  /** To be called within the transaction that writes the event at this place. */
  keep(pos: number, history: StoredHistory): void {
    const { isThere, insert, insertUse } = this.#statements
    const shared = sharedLength(history, (name) => isThere.get(name) !== undefined)
    if (shared < history.length) insert.run(hashed(history.piece(shared)))
    insertUse.run(pos, history.name)
  }

  piece(name: string): HistoryPiece | undefined {
    return this.#statements.piece.get(name)
  }

  /** The piece under a name, and all pieces before it. */
  chain(name: string): readonly HistoryPiece[] {
    return this.#statements.chain.all(name)
  }

  /** To be called within the transaction that takes the payloads at these places away, after it. */
  release(places: readonly number[]): void {
    const { used, deleteUse, deleteUnused } = this.#statements
    const names = new Set(used.all(JSON.stringify(places)))
    for (const pos of places) deleteUse.run(pos)
    for (const name of names) {
      // Pieces that came only before this one are unused now.
      for (let next: string | null | undefined = name; next != null;) next = deleteUnused.get({ name: next })
    }
  }
}

function statementsOf(database: Database) {
  const { rows: prepare, values: pluck } = preparing(database)
  return {
    isThere: pluck<number>('select 1 from history where name = ?'),
    insert: prepare(
      'insert into history (name, before, digest, body) values ($name, $before, $digest, $body)',
    ),
    insertUse: prepare('insert into history_use (pos, name) values (?, ?)'),
    piece: prepare<HistoryPiece & { readonly body: Buffer }>(
      'select name, before, body from history where name = ?',
    ),
    // A union takes each piece once, so that a damaged file which goes round in a circle comes to an end.
    chain: prepare<HistoryPiece & { readonly body: Buffer }>(
      `with recursive chain (name, before) as (
         select name, before from history where name = ?
         union select history.name, history.before from chain join history on history.name = chain.before
       ) select history.name, history.before, history.body from chain join history using (name)`,
    ),
    used: pluck<string>('select name from history_use where pos in (select value from json_each(?))'),
    deleteUse: prepare('delete from history_use where pos = ?'),
    deleteUnused: pluck<string | null>(
      `delete from history where name = $name and not exists (select 1 from history_use where name = $name)
         and not exists (select 1 from history as later where later.before = $name) returning before`,
    ),
  }
}
