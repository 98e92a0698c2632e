import type { HashedPiece } from '../../content/payload/stored-history.ts'
import type { StoredUses } from '../../record/audit-source.ts'
import type { Connections } from '../connection/connections.ts'

/** What `verify` asks about large contents, histories and their uses, in a schema. */
export class PostgresContentAudit {
  readonly #connections: Connections
  readonly #texts: ReturnType<typeof textsOf>

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.#texts = textsOf(quotedSchema)
  }

  /** The next content in the order of digests. */
  contentAfter(digest: string): Promise<{ readonly digest: string; readonly body: Uint8Array } | undefined> {
    return this.#first(this.#texts.contentAfter, digest)
  }

  /** The next piece of a history in the order of names. */
  pieceAfter(name: string): Promise<HashedPiece | undefined> {
    return this.#first(this.#texts.pieceAfter, name)
  }

  /** Contents without a use, and uses without a content or of a row that refers to nothing. */
  async strayContents(): Promise<number> {
    return (await this.#first<{ stray: number }>(this.#texts.strayContents))?.stray ?? 0
  }

  /** Pieces without a use, and uses without a piece or of a row that refers to nothing. */
  async strayPieces(): Promise<number> {
    return (await this.#first<{ stray: number }>(this.#texts.strayPieces))?.stray ?? 0
  }

  /** What is in use at places whose payload is there. */
  uses(places: readonly number[]): Promise<readonly StoredUses[]> {
    return this.#connections.rows<StoredUses>({ text: this.#texts.uses, values: [places] })
  }

  async #first<Row>(text: string, ...values: readonly string[]): Promise<Row | undefined> {
    return (await this.#connections.patiently<Row>({ text, values }))[0]
  }
}

function textsOf(schema: string) {
  const history = `${schema}.history`
  // No plain body refers to anything.
  const refers = (use: string): string =>
    `exists (select from ${schema}.payload where payload.pos = ${use}.pos and substring(payload.body for 1) <> '{'::bytea)`
  return {
    contentAfter: `select digest, body from ${schema}.content where digest > $1 order by digest limit 1`,
    pieceAfter: `select name, before, digest, body from ${history} where name > $1 order by name limit 1`,
    strayContents: `select (select count(*) from ${schema}.content where not exists (
        select from ${schema}.content_use where content_use.digest = content.digest))
      + (select count(*) from ${schema}.content_use where not ${refers('content_use')}
        or not exists (select from ${schema}.content where content.digest = content_use.digest)) as stray`,
    strayPieces: `select (select count(*) from ${history}
        where not exists (select from ${schema}.history_use where history_use.name = history.name)
        and not exists (select from ${history} as later where later.before = history.name))
      + (select count(*) from ${history} where before is not null
        and not exists (select from ${history} as other where other.name = history.before))
      + (select count(*) from ${schema}.history_use where not ${refers('history_use')}
        or not exists (select from ${history} where history.name = history_use.name)) as stray`,
    uses: `select pos, array(select digest from ${schema}.content_use where content_use.pos = payload.pos) as digests,
        array(select name from ${schema}.history_use where history_use.pos = payload.pos) as histories
      from ${schema}.payload where pos = any ($1::int8[])`,
  }
}
