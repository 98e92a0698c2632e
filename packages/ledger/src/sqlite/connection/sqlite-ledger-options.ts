import type { Keyring } from '../../content/payload/keyring.ts'

/** How to open a ledger file. */
export interface SqliteLedgerOptions {
  /** Only reads. The file has to be there, and may be one that cannot be written. */
  readonly readOnly?: boolean | undefined
  /**
   * Keys that what is said in runs with a subject is sealed with. Without them such runs are written in the clear;
   * those that are sealed are read without the content that needs a key, and cannot be continued.
   */
  readonly keys?: Keyring | undefined
  /**
   * Whether one process at a time drives the runs of the file; true if not given. A second process that appends, or
   * takes a run over, is refused with a `LedgerUnavailableError` that names the first, until the first process
   * releases its runs or they end. All processes may read, and send commands through the inbox. With false several
   * processes may write: each run still has one writer, by its epoch, but processes wait for each other's commits,
   * and no error reports a second process.
   */
  readonly oneWriter?: boolean | undefined
  /**
   * How long to wait for another process that writes, in milliseconds. Unless given, 5000 for a commit of it, and 1000
   * for its runs to rest.
   */
  readonly busyTimeoutMs?: number | undefined
  /**
   * The size of the write-ahead log, in bytes, above which it is truncated; 64 MiB if not given. A long read prevents
   * that, and the log grows until the read ends.
   */
  readonly maxWalBytes?: number | undefined
  /** How often `changes` looks for what other processes wrote, in milliseconds. 250 unless given. */
  readonly pollIntervalMs?: number | undefined
  /**
   * How long the pieces of a reply that follow others may wait for more, in milliseconds, so that they are stored as one
   * row: 20 unless given; with 0 each is stored, and shown, as soon as it arrives. The first piece of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}
