import { LedgerUnavailableError } from '@tallystick/core'
import {
  placeBefore,
  type BegunTail,
  type TailBatch,
  type TailPlace,
  type TailRow,
  type TailStart,
} from '../../read/tail-events.ts'
import type { Connections } from '../connection/connections.ts'
import type { DatabasePlace } from '../connection/database-place.ts'
import { bytesPerBatch, eventsPerBatch, type StatementTexts } from './statements.ts'
import { isStorable } from '../connection/storable-name.ts'
import { tailTexts, type TailTexts } from './tail-texts.ts'

interface Beginning {
  /** Below it no transaction is under way. */
  readonly horizon: string
  /** Of the row of the cursor, and how many events that row holds. */
  readonly hash: Buffer | null
  readonly events: number | null
  readonly is_dropped: boolean
  readonly is_more: boolean
  readonly is_held_back: boolean
  readonly is_foreign: boolean
  readonly is_durable: boolean
}

/** The beginning of a tail, and whether there are events that it does not reach yet. */
export interface BegunPostgresTail extends BegunTail {
  readonly isHeldBack: boolean
}

/**
 * What a tail asks of the schema. Transactions get their numbers when they first write, and end in any order; so events
 * are ordered by (xid, pos), and a tail goes up to the lowest number that is under way. After that everything is as it
 * will ever be.
 */
export class PostgresTail {
  readonly #connections: Connections
  readonly #place: DatabasePlace
  readonly #harden: string
  readonly texts: TailTexts

  constructor(connections: Connections, place: DatabasePlace, { harden }: StatementTexts) {
    this.#connections = connections
    this.#place = place
    this.#harden = harden
    this.texts = tailTexts(place.quotedSchema)
  }

  async begin(start: TailStart): Promise<BegunPostgresTail> {
    const { xid, pos, runId } = start
    const [begun] = await this.#connections.rows<Beginning>({
      name: 'tallystick tail',
      text: this.texts.begin,
      // What Postgres cannot hold is no run that is here.
      values: [xid, pos, isStorable(runId) ? runId : '', placeBefore(start).pos],
    })
    if (begun === undefined) throw new Error('A statement that returns one row returned none.')
    if (begun.is_foreign) throw this.#foreign()
    // A reader continues after the last event it saw, so a crash of the server must not lose that event.
    if (begun.is_more && !begun.is_durable) await this.#connections.rows({ text: this.#harden, values: [] })
    const nothing = { rows: [], isLast: true }
    return {
      rowAtCursor: begun.hash ? { runId, hash: begun.hash, events: begun.events ?? 1 } : undefined,
      isDropped: begun.is_dropped,
      isHeldBack: begun.is_held_back,
      batch: (after) => (begun.is_more ? this.#batch(after, begun.horizon) : Promise.resolve(nothing)),
    }
  }

  /** What differs from one look to the next has changed for a tail or in an inbox. */
  async mark(): Promise<{ readonly mark: string; readonly isHeldBack: boolean }> {
    const [row] = await this.#connections.rows<{ readonly mark: string; readonly is_held_back: boolean }>({
      name: 'tallystick mark',
      text: this.texts.mark,
      values: [],
    })
    return { mark: row?.mark ?? '', isHeldBack: row?.is_held_back ?? false }
  }

  async #batch({ xid, pos }: TailPlace, horizon: string): Promise<TailBatch> {
    const rows = await this.#connections.rows<TailRow>({
      name: 'tallystick tail page',
      text: this.texts.batch,
      values: [xid, pos, horizon],
    })
    const bytes = rows.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
    return { rows, isLast: rows.length < eventsPerBatch && bytes < bytesPerBatch }
  }

  #foreign(): LedgerUnavailableError {
    return new LedgerUnavailableError(
      `The ledger at ${this.#place.description} came from another server, as by a restored dump: its events name ` +
        'transactions that this server has not reached, so their order of commit is unknown, and a tail ' +
        'would leave events out. Everything else works. Let the owner number them anew, as src/postgres/README.md of ' +
        '@tallystick/ledger says under "The order of a tail", and begin the tail without a cursor.',
    )
  }
}
