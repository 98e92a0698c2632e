import type { Ledger } from '../../ledger/ledger.ts'

/** Opens a ledger over the store of this case. The store is empty at the first call. */
export type OpenLedger = () => Promise<Ledger>

/** One promise of the ledger port, and how to find out whether a store keeps it. */
export interface LedgerContractCase {
  /** What the store promises, as a sentence. */
  readonly promise: string
  /**
   * What a store has to be for the promise to mean anything. Skip the case, with that reason, where yours is not.
   * - `durable`: what was closed can be opened again
   * - `shared`: two ledgers may be open over one store at the same time
   */
  readonly needs?: 'durable' | 'shared'
  /** Rejects with an error that says what was expected and what was found. Opened ledgers may be left open. */
  readonly run: (open: OpenLedger) => Promise<void>
}
