import { ConfigurationError, type Ledger } from '@tallystick/core'
import type { RowReader } from './readable-rows.ts'
import type { Store } from './store.ts'

/** What a ledger of this package lends to its functions beneath the port. */
export interface Internals {
  readonly store: Store
  readonly rows: RowReader
}

/** The member under which it does. Not part of the port. */
export const internals: unique symbol = Symbol.for('tallystick.ledger.internals')

/** The store beneath a ledger; `undefined` for a ledger from elsewhere, and for one that something is wrapped around. */
export function internalsOf(ledger: Ledger): Internals | undefined {
  return (ledger as { readonly [internals]?: Internals })[internals]
}

/** Throws a `ConfigurationError` for a ledger that cannot remove content. */
export function requireRemovable(ledger: Ledger): Internals {
  const found = internalsOf(ledger)
  if (found) return found
  throw new ConfigurationError(
    'This ledger cannot remove content: only sqliteLedger and postgresLedger can. ' +
      'Pass the ledger itself, not something wrapped around it.',
  )
}
