import type { Keyring } from '../../content/payload/keyring.ts'

/** How to reach the database of a ledger, and how to use it. */
export interface PostgresLedgerOptions {
  /** As `pg` takes it: `postgres://user:password@host:port/database`, with `sslmode` and the like as parameters. */
  readonly connectionString: string
  /** Schema of the ledger's tables; created if missing. `tallystick` if not given. */
  readonly schema?: string | undefined
  /**
   * Keys that encrypt the content of runs with a subject. Without them the ledger writes such runs in the clear, and
   * reads encrypted runs without their content; these cannot be continued.
   */
  readonly keys?: Keyring | undefined
  /** Only reads: the ledger has to exist, and a role that may only read is enough. */
  readonly readOnly?: boolean | undefined
  /**
   * Whether the connection string names a pooler in transaction mode, such as PgBouncer. Then nothing is kept on a
   * connection between statements, and `changes` polls for events that other processes wrote.
   */
  readonly pooled?: boolean | undefined
  /** The most connections at a time, beside the one that listens. 10 unless given. */
  readonly maxConnections?: number | undefined
  /** How long the server may take to accept a connection, in milliseconds. 10000 unless given. */
  readonly connectTimeoutMs?: number | undefined
  /** How long a statement may take before it is given up, in milliseconds. 30000 unless given. */
  readonly statementTimeoutMs?: number | undefined
  /**
   * How often `changes` polls for writes of other processes, in milliseconds: 250 with a pooler; otherwise 1000,
   * since it receives notifications and polls only to be sure.
   */
  readonly pollIntervalMs?: number | undefined
  /**
   * How long deltas of a reply may wait for further ones, in milliseconds, so that they are stored as one row: 20 unless given; with
   * 0 each is stored, and shown, as soon as it arrives. The first delta of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}
