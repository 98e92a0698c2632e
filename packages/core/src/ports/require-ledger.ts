import { valueThat } from '../vocabulary/options/option.ts'
import { requireOptions } from '../vocabulary/options/require-options.ts'
import type { Ledger } from './ledger.ts'

/** A runtime asks for more (`someLedger`): what is only read may be given as its `read` alone. */
const anyLedger = valueThat(
  'a ledger, such as sqliteLedger(path) makes',
  (value) =>
    typeof value === 'object' && value !== null && 'read' in value && typeof value.read === 'function',
)

/** Refuses what is no ledger where one belongs, such as the path of one. Throws a `ConfigurationError`. */
export function requireLedger(subject: string, ledger: Pick<Ledger, 'read'>): void {
  requireOptions(subject, anyLedger, ledger, 'the ledger')
}
