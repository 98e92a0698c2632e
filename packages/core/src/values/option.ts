import { ConfigurationError } from './errors.ts'
import { getOwn } from './json.ts'
import {
  type Fault,
  placeFault,
  flag,
  isAsync,
  isPlain,
  isThenable,
  joinPath,
  maybe,
  type OptionalSchema,
  recordOf as everyFieldOf,
  type Schema,
  text,
  createUnfitFault,
  valueThat,
  wordOf,
} from './schema.ts'
import { findNearestName, formatErrorSentence } from './text.ts'

export {
  type Fault,
  placeFault,
  isAsync,
  isThenable,
  listOf,
  maybe,
  numberFrom,
  formatFault,
  type OptionalSchema,
  type Schema,
  createUnfitFault,
  valueThat,
} from './schema.ts'

/**
 * A schema for each field of `T`: the compiler wants every field, and wants those of optional ones to be optional. As their
 * schema takes `undefined`, an optional field has to be declared with it, so that a caller under `exactOptionalPropertyTypes`
 * may pass on what is optional there.
 */
export type OptionChecks<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? { [P in K]: undefined } extends Pick<T, K>
      ? OptionalSchema
      : 'Declare the field with | undefined: its check takes undefined.'
    : undefined extends T[K]
      ? OptionalSchema
      : Schema & { readonly isOptional?: never }
}

/**
 * An object with these fields and no other. `otherNames` leads from names that other libraries use to ours, where no likeness
 * of letters does.
 */
export function fields<T extends object>(
  checks: OptionChecks<T>,
  otherNames: { readonly [name: string]: string } = {},
): Schema<T> {
  const known = Object.keys(checks)
  const table = checks as { readonly [name: string]: Schema }
  return (value) => {
    if (!isPlain(value)) return createUnfitFault(value, 'an object')
    for (const name of Object.keys(value)) {
      if (value[name] === undefined || Object.hasOwn(table, name)) continue
      const nearest = getOwn(otherNames, name) ?? findNearestName(name, known)
      const within = (place: string): string => {
        const hint = nearest === undefined ? '' : `Did you mean ${joinPath(place, nearest)}? `
        return `is not an option. ${hint}Options are ${known.join(', ')}`
      }
      return { path: name, what: within(''), within }
    }
    for (const name of known) {
      const fault = findInherited(value, name) ?? table[name]?.(value[name])
      if (fault) return placeFault(name, fault)
    }
    return undefined
  }
}

/** A setting that an object has from its prototype alone would be lost where options are copied. Methods are called there. */
function findInherited(value: { readonly [name: string]: unknown }, name: string): Fault | undefined {
  if (Object.hasOwn(value, name) || value[name] === undefined || typeof value[name] === 'function')
    return undefined
  return { path: '', what: 'is inherited from a prototype; expected a field of the object itself' }
}

/** An object of any names, whose values pass the check. A name without a value counts for nothing. */
export function recordOf(item: Schema): Schema {
  return everyFieldOf(maybe(item))
}

/** A function that is not async, or what passes the check. */
export function functionOr(check: Schema): Schema {
  return (value) => (typeof value === 'function' ? plainFunction : check)(value)
}

const shown = { showsText: true }

/** One of these texts; the fault shows which text was given. */
export function oneOf(values: readonly string[]): Schema {
  return wordOf(values, shown)
}

/** One of these texts, or another value that passes the check: its error would not show which text was given. */
export function textOr(values: readonly string[], check: Schema): Schema {
  const aText = oneOf(values)
  return (value) => (typeof value === 'string' ? aText : check)(value)
}

/** The longest wait that timers take; beyond it they go off at once. */
const MAX_TIMER_MS = 2_147_483_647

/** A time that a timer can wait for. */
export const milliseconds: Schema = valueThat(
  `a whole number of milliseconds from 1 to ${MAX_TIMER_MS}`,
  (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_TIMER_MS,
  shown,
)

/** The longest time that a person may be waited for: a date far beyond it would be none. */
const MAX_LONG_MS = 100 * 365 * 24 * 3_600_000

/** A time that may be as long as a person needs. */
export const longTime: Schema = valueThat(
  `a number of milliseconds from 1 to ${MAX_LONG_MS} (a hundred years)`,
  (value) => Number.isFinite(value) && (value as number) >= 1 && (value as number) <= MAX_LONG_MS,
  shown,
)

export const anyText: Schema<string> = text
export const filledText: Schema = valueThat(
  'a text that is not empty',
  (value) => typeof value === 'string' && value.trim() !== '',
)
export const trueOrFalse: Schema<boolean> = flag
export const anyFunction: Schema = valueThat('a function', (value) => typeof value === 'function')
/** A function that answers at once: what it answers with a promise would be taken for the answer. */
export const plainFunction: Schema = valueThat(
  'a function that is not async, since its answer is used at once',
  (value) => typeof value === 'function' && !isAsync(value),
)
export const anyObject: Schema = valueThat('an object', isPlain)

/**
 * Refuses options that do not pass the check, with a `ConfigurationError` that names the option and what it should be.
 * `subject` says who was given them, such as `defineAgent`; `path` what they are called, where they have a name.
 */
export function requireOptions(subject: string, check: Schema, given: unknown, path = ''): void {
  const fault = check(given)
  if (fault === undefined) return
  ignoreRejection(given)
  const { path: place, what } = placeFault(path, fault)
  throw new ConfigurationError(
    `${subject}: ${place || 'what it was given'} ${what}${what.endsWith('?') ? '' : '.'}`,
  )
}

/** Handles the rejection of a promise that was passed by mistake and is not used, so that it does not end the process. */
export function ignoreRejection(given: unknown): void {
  if (isThenable(given)) given.then(undefined, () => {})
}

/**
 * Calls a function of the application whose answer is used at once, and returns the answer. Throws a `ConfigurationError`
 * that names the function where it throws, answers with a promise, or answers what the check refuses. `subject` names the
 * function, such as `stopWhen of the agent desk`.
 */
export function requireAnswer<T>(subject: string, call: () => T, check?: Schema): T {
  try {
    const answer = call()
    requireNoPromise(subject, answer)
    if (check) requireOptions(subject, check, answer, 'its answer')
    return answer
  } catch (cause) {
    // The runtime's own checks say already what to change.
    if (cause instanceof ConfigurationError) throw cause
    throw new ConfigurationError(
      `${subject} threw: ${formatErrorSentence(cause)} Correct the function: the runtime needs its answer.`,
      { cause },
    )
  }
}

/** Refuses a promise where the answer of the caller's code is used at once. `subject` names the code. */
export function requireNoPromise(subject: string, answer: unknown): void {
  if (!isThenable(answer)) return
  ignoreRejection(answer)
  throw new ConfigurationError(
    `${subject} returned a promise, but its result is used at once. Make it a function that is not async: load what it needs before the run, and pass it in.`,
  )
}
