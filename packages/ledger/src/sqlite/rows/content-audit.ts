import type { Database } from 'better-sqlite3'
import type { HashedPiece } from '../../content/payload/stored-history.ts'
import type { StoredUses } from '../../record/audit-source.ts'
import { preparing } from './late-statement.ts'

/** What `verify` asks about large contents, histories and their uses. All of it is synchronous. */
export class SqliteContentAudit {
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database) {
    this.#statements = statementsOf(database)
  }

  /** The next content after a place of the table. */
  contentAfter(place: number): { place: number; digest: string; body: Uint8Array } | undefined {
    return this.#statements.contentAfter.get(place)
  }

  /** The next piece of a history in the order of names. */
  pieceAfter(name: string): HashedPiece | undefined {
    return this.#statements.pieceAfter.get(name)
  }

  /** Contents without a use, and uses without a content or of a row that refers to nothing. */
  strayContents(): number {
    return this.#statements.strayContents.get() ?? 0
  }

  /** Pieces without a use, and uses without a piece or of a row that refers to nothing. */
  strayPieces(): number {
    return this.#statements.strayPieces.get() ?? 0
  }

  /** What is in use at places whose payload is there. */
  uses(places: readonly number[]): readonly StoredUses[] {
    return this.#statements.uses.all(JSON.stringify(places)).map(({ pos, digests, histories }) => ({
      pos,
      digests: JSON.parse(digests) as readonly string[],
      histories: JSON.parse(histories) as readonly string[],
    }))
  }
}

/** Whether there is a payload at a place that may refer to what is stored elsewhere: no plain body does. */
const refers = (use: string): string =>
  `exists (select 1 from payload where payload.pos = ${use}.pos and substr(payload.body, 1, 1) <> x'7b')`

function statementsOf(database: Database) {
  const { rows: prepare, values: pluck } = preparing(database)
  return {
    contentAfter: prepare<{ place: number; digest: string; body: Buffer }>(
      'select rowid as place, digest, body from content where rowid > ? order by rowid limit 1',
    ),
    pieceAfter: prepare<HashedPiece & { readonly body: Buffer }>(
      'select name, before, digest, body from history where name > ? order by name limit 1',
    ),
    strayContents: pluck<number>(
      `select (select count(*) from content where digest not in (select digest from content_use))
         + (select count(*) from content_use where digest not in (select digest from content)
           or not ${refers('content_use')})`,
    ),
    strayPieces: pluck<number>(
      `select (select count(*) from history where name not in (select name from history_use)
           and name not in (select before from history where before is not null))
         + (select count(*) from history where before is not null and before not in (select name from history))
         + (select count(*) from history_use where name not in (select name from history)
           or not ${refers('history_use')})`,
    ),
    uses: prepare<{ pos: number; digests: string; histories: string }>(
      `select pos, (select json_group_array(digest) from content_use where content_use.pos = payload.pos) as digests,
         (select json_group_array(name) from history_use where history_use.pos = payload.pos) as histories
       from payload where pos in (select value from json_each(?))`,
    ),
  }
}
