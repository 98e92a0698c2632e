import { createHash } from 'node:crypto'
import type { RunId } from '@tallystick/core'
import { Client } from 'pg'
import { connectionConfig } from './connections.ts'
import type { PostgresLedgerOptions } from './postgres-ledger-options.ts'

/** Where processes tell each other what they wrote. Postgres cuts long names short, so the schema is in it as a digest. */
export function channelOf(schema: string): string {
  return `tallystick_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
}

/** Postgres takes payloads of fewer bytes than 8000. */
const payloadBytesMax = 7_900

/** Which runs have changed, as a payload; an empty one where they are too many to name. */
export function payloadOf(runIds: readonly string[]): string {
  const payload = JSON.stringify(runIds)
  return Buffer.byteLength(payload) <= payloadBytesMax ? payload : ''
}

/** The runs of a payload; `undefined` where it names none. */
export function runIdsOf(payload: string): readonly RunId[] | undefined {
  try {
    const named: unknown = JSON.parse(payload)
    return Array.isArray(named) ? (named as readonly RunId[]) : undefined
  } catch {
    return undefined
  }
}

/** One connection that is told of changes by other processes. It does not keep a process alive. */
export class ChangeListener {
  readonly #options: PostgresLedgerOptions
  readonly #channel: string
  readonly #hear: (runIds: readonly RunId[] | undefined) => void
  #client: Client | undefined

  /** `hear` gets the runs that may have changed; `undefined` where nobody knows which. */
  constructor(
    options: PostgresLedgerOptions,
    channel: string,
    hear: (runIds: readonly RunId[] | undefined) => void,
  ) {
    this.#options = options
    this.#channel = channel
    this.#hear = hear
  }

  /** Listens, if it does not yet. Failing is no matter: whoever calls this looks by itself meanwhile, and calls again. */
  async listen(): Promise<void> {
    if (this.#client !== undefined) return
    const client = new Client(connectionConfig(this.#options))
    this.#client = client
    const drop = (): void => {
      if (this.#client === client) this.#client = undefined
    }
    client.on('error', drop)
    client.on('end', drop)
    client.on('notification', ({ payload = '' }) => this.#hear(runIdsOf(payload)))
    try {
      await client.connect()
      unreferenced(client)
      await client.query(`listen ${this.#channel}`)
    } catch {
      drop()
      await client.end().catch(() => undefined)
      return
    }
    // What changed before it listened, nobody told it.
    if (this.#client === client) this.#hear(undefined)
    else await client.end().catch(() => undefined)
  }

  /** Lets go of the connection. It may listen again later. */
  async leave(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => undefined)
  }
}

/** A connection by itself keeps no process alive. The types of pg do not tell that a client can do this. */
function unreferenced(client: Client & { unref?(): void }): void {
  client.unref?.()
}
