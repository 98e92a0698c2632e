import type { Ledger } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'

/** A runtime asks for more (`someLedger` of core): what is only read may be given as its `read` alone. */
const anyLedger = option.valueThat(
  'a ledger, such as sqliteLedger(path) makes',
  (value) =>
    typeof value === 'object' && value !== null && 'read' in value && typeof value.read === 'function',
)

/** Refuses what is no ledger where one belongs, such as the path of one. Throws a `ConfigurationError`. */
export function requireLedger(subject: string, ledger: Ledger): void {
  requireOptions(subject, anyLedger, ledger, 'the ledger')
}
