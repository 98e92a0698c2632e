import { option, type OptionCheck } from '@tallystick/core/kit'
import { keyring, type Keyring } from '../format/keyring.ts'
import { deltaDelay } from '../store/open-ledger.ts'

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
   * How long to wait for the commit of another process, in milliseconds. Default: 5000.
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
   * How long deltas of a reply may wait for further ones, in milliseconds, so that one event records them: 20 unless
   * given; with 0 each is recorded, and shown, as soon as it arrives. The first delta of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}

const { fields, maybe, milliseconds, trueOrFalse, valueThat } = option

/** What `sqliteLedger` takes beside the path. */
export const sqliteLedgerOptions: OptionCheck = fields<SqliteLedgerOptions>(
  {
    readOnly: maybe(trueOrFalse),
    keys: maybe(keyring),
    busyTimeoutMs: maybe(
      valueThat(
        'a whole number of milliseconds from 0 to 2147483647',
        (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff,
      ),
    ),
    maxWalBytes: maybe(
      valueThat(
        'a whole number of bytes, at least 1',
        (value) => Number.isSafeInteger(value) && (value as number) >= 1,
      ),
    ),
    pollIntervalMs: maybe(milliseconds),
    deltaDelayMs: maybe(deltaDelay),
  },
  { timeout: 'busyTimeoutMs', keyring: 'keys' },
)
