/// <reference lib="esnext.disposable" preserve="true" />
import type { Ledger } from './ledger.ts'

/** A ledger that is closed at the end of the block in which it is declared with `await using`. */
export interface OpenLedger extends Ledger {
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The same ledger, closed by `await using`: for authors of stores, as the last step of making one. A host without that, such as an older browser, gets the ledger as
 * it is.
 */
export function closedByUsing<Opened extends Ledger>(ledger: Opened): Opened & OpenLedger {
  if (typeof Symbol.asyncDispose === 'symbol') {
    // Of whatever object it is called on: a copy with a `close` of its own is closed by that.
    const dispose = function (this: Ledger): Promise<void> {
      return this.close()
    }
    Object.assign(ledger, { [Symbol.asyncDispose]: dispose })
  }
  return ledger as Opened & OpenLedger
}
