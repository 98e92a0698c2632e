import type { Keyring } from '../../content/payload/keyring.ts'

/** How to open a ledger file. */
export interface SqliteLedgerOptions {
  /** Only reads. The file has to be there, and may be one that cannot be written. */
  readonly readOnly?: boolean | undefined
  /**
   * Keys that what is said in runs with a subject is sealed with. Without them such runs are written in the clear; those
   * that are sealed are read as far as that goes without a key, and cannot go on.
   */
  readonly keys?: Keyring | undefined
  /**
   * Whether one process at a time drives the runs of the file: true unless given. A second one that appends, or takes a
   * run over, is refused with a `LedgerUnavailableError` that names the first, until the runs of that one rest or end.
   * Reading, and commands that go through the inbox, stay free to all. With false several may write: each run is still
   * one's at a time, by its epoch, but processes wait for each other's commits, and nobody is told of a second one.
   */
  readonly oneWriter?: boolean | undefined
  /**
   * How long to wait for another process that writes, in milliseconds. Unless given, 5000 for a commit of it, and 1000
   * for its runs to rest.
   */
  readonly busyTimeoutMs?: number | undefined
  /**
   * What the write-ahead log beside the file may grow to, in bytes, before it is cut to nothing: 64 MiB unless given.
   * Whoever reads for long keeps it from being cut, and it grows on until they are done.
   */
  readonly walBytesMax?: number | undefined
  /** How often `changes` looks for what other processes wrote, in milliseconds. 250 unless given. */
  readonly pollIntervalMs?: number | undefined
}
