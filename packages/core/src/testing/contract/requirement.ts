import { LedgerConflictError, TallystickError } from '../../values/errors.ts'
import { differenceOf, legibleText } from '../../values/text.ts'

/** Fails the case unless two values are the same JSON. `what` names the value in the message. */
export function requireEqual(actual: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(actual, expected)
  if (difference) throw broken(`${what} should be ${difference.expected}, but is ${difference.found}`)
}

/** Fails the case unless the condition holds. */
export function require(condition: boolean, what: string): asserts condition {
  if (!condition) throw broken(what)
}

/** Fails the case unless the promise rejects with a `TallystickError` of that code; answers the error. */
export async function requireRefusal(promise: Promise<unknown>, code: string): Promise<TallystickError> {
  let outcome: unknown
  try {
    outcome = await promise
  } catch (error) {
    if (error instanceof TallystickError && error.code === code) return error
    throw broken(
      `the refusal should be a TallystickError of code ${code}, but is ${legibleText(error)}`,
      error,
    )
  }
  throw broken(`the ledger should refuse with code ${code}, but answers ${legibleText(outcome)}`)
}

/** Fails the case unless the append is refused with a `LedgerConflictError` of that kind. */
export async function requireConflict(
  append: Promise<unknown>,
  kind: LedgerConflictError['kind'],
): Promise<void> {
  const error = await requireRefusal(append, 'ledger_conflict')
  require(error instanceof LedgerConflictError, 'a conflict is no LedgerConflictError')
  requireEqual(error.kind, kind, 'the kind of the conflict')
}

function broken(what: string, cause?: unknown): TallystickError {
  return new TallystickError('contract', `The ledger breaks its contract: ${what}.`, { cause })
}
