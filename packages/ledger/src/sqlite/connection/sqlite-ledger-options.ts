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
  /**
   * Whether one process at a time drives the runs of the file; true if not given. A second process that appends, or
   * takes a run over, is refused with a `LedgerUnavailableError` that names the first, until the first process
   * releases its runs or they end. All processes may read, and send commands through the inbox. With false several
   * processes may write: each run still has one writer, by its epoch, but processes wait for each other's commits,
   * and no error reports a second process.
   */
  readonly oneWriter?: boolean | undefined
  /**
   * How long to wait for another process that writes, in milliseconds. Default: 5000 for its commit, and 1000 for its
   * runs to stop.
   */
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
