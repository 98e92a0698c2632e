import type { Keyring } from '../../content/payload/keyring.ts'

/** How to open a ledger file. */
export interface SqliteLedgerOptions {
  /** Only reads. The file has to exist, and may be read-only. */
  readonly readOnly?: boolean | undefined
  /**
   * Keys that encrypt the content of runs with a subject. Without them the ledger writes such runs in the clear, and
   * reads encrypted runs without their content; these cannot be continued.
   */
  readonly keys?: Keyring | undefined
  /** How long to wait for another process that commits, in milliseconds; 5000 if not given. */
  readonly busyTimeoutMs?: number | undefined
  /**
   * The size of the write-ahead log, in bytes, above which it is truncated; 64 MiB if not given. A long read prevents
   * that, and the log grows until the read ends.
   */
  readonly maxWalBytes?: number | undefined
  /** How often `changes` looks for events that other processes wrote, in milliseconds. Default: 250. */
  readonly pollIntervalMs?: number | undefined
  /**
   * How long deltas of a reply may wait for further ones, in milliseconds, so that they are stored as one row: 20 unless given; with
   * 0 each is stored, and shown, as soon as it arrives. The first delta of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}
