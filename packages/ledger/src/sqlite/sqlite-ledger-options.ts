import type { Keyring } from '../content/keyring.ts'

/** How to open a ledger file. */
export interface SqliteLedgerOptions {
  /** Only reads. The file has to be there, and may be one that cannot be written. */
  readonly readOnly?: boolean
  /**
   * Keys that what is said in runs with a subject is sealed with. Without them such runs are written in the clear; those
   * that are sealed are read as far as that goes without a key, and cannot go on.
   */
  readonly keys?: Keyring
  /** How long to wait for another process that writes, in milliseconds. 5000 unless given. */
  readonly busyTimeoutMs?: number
  /** How often `changes` looks for what other processes wrote, in milliseconds. 250 unless given. */
  readonly pollIntervalMs?: number
}
