import { LedgerConflictError, TallystickError } from '../../vocabulary/errors.ts'
import { canonicalJson, type Json } from '../../vocabulary/values/json.ts'

/** Fails the case unless two values are the same JSON. `what` names the value in the message. */
export function requireEqual(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [canonicalJson(actual as Json), canonicalJson(expected as Json)]
  if (found === wanted) return
  const start = Math.max(0, firstDifference(found, wanted) - 60)
  throw broken(`${what} should be ${excerpt(wanted, start)}, but is ${excerpt(found, start)}`)
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
    throw broken(`the refusal should be a TallystickError of code ${code}, but is ${String(error)}`, error)
  }
  throw broken(`the ledger should refuse with code ${code}, but answers ${String(outcome)}`)
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

function firstDifference(left: string, right: string): number {
  let index = 0
  while (index < left.length && left[index] === right[index]) index++
  return index
}

/** The text from shortly before the place that matters. */
function excerpt(text: string, start: number): string {
  const end = start + 300
  return `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`
}
