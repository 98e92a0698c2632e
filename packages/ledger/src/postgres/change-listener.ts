import { createHash } from 'node:crypto'
import type { RunId } from '@tallystick/core'
import type { Client } from 'pg'
import { connectionConfig } from './connection/connection-config.ts'
import { loadPg } from './connection/pg-package.ts'
import type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'

/** Where processes tell each other what they wrote. Postgres cuts long names short, so the schema is in it as a digest. */
export function channelOf(schema: string): string {
  return `tallystick_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

/** Postgres takes payloads of fewer bytes than 8000. */
const maxPayloadBytes = 7_900

/** What one ledger tells the others. */
export interface Word {
  /** Who tells it: one ledger of one process. */
  readonly from: string
  /** The runs that changed; none where they are too many to name. */
  readonly runIds: readonly RunId[]
}

/** A word as a payload. */
export function payloadOf({ from, runIds }: Word): string {
  const payload = JSON.stringify([from, ...runIds])
  return Buffer.byteLength(payload) <= maxPayloadBytes ? payload : JSON.stringify([from])
}

/** The word of a payload; one that is no word says that anything may have changed. */
export function wordOf(payload: string): Word {
  try {
    const parsed: unknown = JSON.parse(payload)
    const [from, ...runIds] = Array.isArray(parsed) ? (parsed as readonly unknown[]) : []
    if (typeof from === 'string') return { from, runIds: runIds as readonly RunId[] }
  } catch {
    // Any client of the database may write to a channel.
  }
  return { from: '', runIds: [] }
}

/** Stands for a connection while the driver is loaded. */
const opening: unique symbol = Symbol('opening')

/** One connection that receives notifications of changes by other processes. It does not keep a process alive. */
export class ChangeListener {
  readonly #options: PostgresLedgerOptions
  readonly #channel: string
  readonly #onChange: (word: Word) => void
  #client: Client | typeof opening | undefined

  constructor(options: PostgresLedgerOptions, channel: string, onChange: (word: Word) => void) {
    this.#options = options
    this.#channel = channel
    this.#onChange = onChange
  }

  /** Listens, if it does not yet. Ignores failures: the caller polls meanwhile, and calls again. */
  async listen(): Promise<void> {
    if (this.#client !== undefined) return
    this.#client = opening
    const pg = await loadPg().catch(() => undefined)
    // It was left meanwhile, or asked to listen once more.
    if (this.#client !== opening) return
    const client = pg && new pg.Client(connectionConfig(this.#options, pg))
    this.#client = client
    if (client === undefined) return
    const drop = (): void => {
      if (this.#client === client) this.#client = undefined
    }
    client.on('error', drop)
    client.on('end', drop)
    client.on('notification', ({ payload = '' }) => this.#onChange(wordOf(payload)))
    try {
      await client.connect()
      unreferenced(client)
      await client.query(`listen ${this.#channel}`)
    } catch {
      drop()
      await client.end().catch(() => undefined)
      return
    }
    // It got no notification of changes before it listened.
    if (this.#client === client) this.#onChange({ from: '', runIds: [] })
    else await client.end().catch(() => undefined)
  }

  /** Releases the connection. It may listen again later. */
  async leave(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client !== opening) await client?.end().catch(() => undefined)
  }
}

/** Lets the process end while the connection is open. The types of pg lack this method. */
function unreferenced(client: Client & { unref?(): void }): void {
  client.unref?.()
}
