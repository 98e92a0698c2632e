import { getOwn } from './json.ts'
import { nearestName, sentenceOfError } from './text.ts'
import { ConfigurationError } from './errors.ts'

/** What is wrong with an option: its path, such as `limits.maxTurns`, and what is wrong with it. */
export interface OptionFault {
  readonly path: string
  readonly what: string
}

/** Looks at the value of an option. Calls nothing of what it is given. */
export type OptionCheck = (value: unknown, path: string) => OptionFault | undefined

/** A check of an option that may be left out. */
export type OptionalCheck = OptionCheck & { readonly isOptional: true }

/**
 * A check for each field of `T`: the compiler wants every field, and wants those of optional ones to be optional. As their
 * check takes `undefined`, an optional field has to be declared with it, so that a caller under `exactOptionalPropertyTypes`
 * may pass on what is optional there.
 */
export type OptionChecks<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K>
    ? { [P in K]: undefined } extends Pick<T, K>
      ? OptionalCheck
      : 'Declare the field with | undefined: its check takes undefined.'
    : undefined extends T[K]
      ? OptionalCheck
      : OptionCheck & { readonly isOptional?: never }
}

/** An option that may be left out, or be `undefined`. */
export function maybe(check: OptionCheck): OptionalCheck {
  const optional = (value: unknown, path: string): OptionFault | undefined =>
    value === undefined ? undefined : check(value, path)
  return Object.assign(optional, { isOptional: true as const })
}

/**
 * A value of which `fits` is true; `expected` says in words what that is. `showsText` has the error show a text that was given:
 * only where no text is right, and none is a secret.
 */
export function valueThat(
  expected: string,
  fits: (value: unknown) => boolean,
  { showsText = false }: { readonly showsText?: boolean } = {},
): OptionCheck {
  return (value, path) => (fits(value) ? undefined : unfit(value, path, expected, showsText))
}

/**
 * An object with these fields and no other. `otherNames` leads from names of the field's other libraries to ours, where
 * no likeness of letters does.
 */
export function fields<T extends object>(
  checks: OptionChecks<T>,
  otherNames: { readonly [name: string]: string } = {},
): OptionCheck {
  const known = Object.keys(checks)
  const table = checks as { readonly [name: string]: OptionCheck }
  return (value, path) => {
    if (!isPlain(value)) return unfit(value, path, 'an object')
    for (const name of Object.keys(value)) {
      if (value[name] === undefined || Object.hasOwn(table, name)) continue
      const nearest = getOwn(otherNames, name) ?? nearestName(name, known)
      const hint = nearest === undefined ? '' : `Did you mean ${below(path, nearest)}? `
      return { path: below(path, name), what: `is no option. ${hint}Options are ${known.join(', ')}` }
    }
    for (const name of known) {
      const fault = inherited(value, name, path) ?? table[name]?.(value[name], below(path, name))
      if (fault) return fault
    }
    return undefined
  }
}

/** A setting that an object has from its prototype alone would be lost where options are copied. Methods are called there. */
function inherited(
  value: { readonly [name: string]: unknown },
  name: string,
  path: string,
): OptionFault | undefined {
  if (Object.hasOwn(value, name) || value[name] === undefined || typeof value[name] === 'function')
    return undefined
  return {
    path: below(path, name),
    what: 'is inherited from a prototype; expected a field of the object itself',
  }
}

/** A list whose items pass the check. */
export function listOf(check: OptionCheck): OptionCheck {
  return (value, path) => {
    if (!Array.isArray(value)) return unfit(value, path, 'a list, as in [ … ]')
    for (const [index, item] of value.entries()) {
      const fault = check(item, `${path}[${index}]`)
      if (fault) return fault
    }
    return undefined
  }
}

/** An object of any names, whose values pass the check. */
export function recordOf(check: OptionCheck): OptionCheck {
  return (value, path) => {
    if (!isPlain(value)) return unfit(value, path, 'an object')
    for (const [name, item] of Object.entries(value)) {
      const fault = item === undefined ? undefined : check(item, below(path, name))
      if (fault) return fault
    }
    return undefined
  }
}

/** A function that is not async, or what passes the check. */
export function functionOr(check: OptionCheck): OptionCheck {
  return (value, path) => (typeof value === 'function' ? plainFunction(value, path) : check(value, path))
}

const shown = { showsText: true }

/** One of these texts. */
export function oneOf(values: readonly string[]): OptionCheck {
  return (value, path) => {
    if (typeof value === 'string' && values.includes(value)) return undefined
    const nearest = typeof value === 'string' ? nearestName(value, values) : undefined
    const hint = nearest === undefined ? '' : ` Did you mean '${nearest}'?`
    const given = typeof value === 'string' ? quoted(value) : valueText(value)
    const expected = values.map((each) => `'${each}'`).join(', ')
    const is = value === undefined ? 'is missing' : `is ${given}`
    return { path, what: `${is}; use one of ${expected}.${hint}`.replace(/\.$/, '') }
  }
}

/** One of these texts, or another value that passes the check: its error would not show which text was given. */
export function textOr(values: readonly string[], check: OptionCheck): OptionCheck {
  const aText = oneOf(values)
  return (value, path) => (typeof value === 'string' ? aText : check)(value, path)
}

/** A finite number from `min` on, whole where so asked. */
export function numberFrom(min: number, { whole = false }: { readonly whole?: boolean } = {}): OptionCheck {
  const fits = whole ? Number.isSafeInteger : Number.isFinite
  const kind = whole ? 'a whole number' : 'a finite number'
  return valueThat(`${kind} of at least ${min}`, (value) => fits(value) && (value as number) >= min, shown)
}

/** The longest wait that timers take; beyond it they go off at once. */
const MAX_TIMER_MS = 2_147_483_647

/** A time that a timer can wait for. */
export const milliseconds: OptionCheck = valueThat(
  `a whole number of milliseconds from 1 to ${MAX_TIMER_MS}`,
  (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= MAX_TIMER_MS,
  shown,
)

/** The longest time that a person may be waited for: a date far beyond it would be none. */
const MAX_LONG_MS = 100 * 365 * 24 * 3_600_000

/** A time that may be as long as a person needs. */
export const longTime: OptionCheck = valueThat(
  `a number of milliseconds from 1 to ${MAX_LONG_MS} (a hundred years)`,
  (value) => Number.isFinite(value) && (value as number) >= 1 && (value as number) <= MAX_LONG_MS,
  shown,
)

/** Any text. */
export const anyText: OptionCheck = valueThat('a text', (value) => typeof value === 'string')
/** A text that is not empty. */
export const filledText: OptionCheck = valueThat(
  'a text that is not empty',
  (value) => typeof value === 'string' && value.trim() !== '',
)
/** `true` or `false`. */
export const trueOrFalse: OptionCheck = valueThat(
  'true or false',
  (value) => typeof value === 'boolean',
  shown,
)
/** Any function. */
export const anyFunction: OptionCheck = valueThat('a function', (value) => typeof value === 'function')
/** A function that answers at once: what it answers with a promise would be taken for the answer. */
export const plainFunction: OptionCheck = valueThat(
  'a function that is not async, since its answer is used at once',
  (value) => typeof value === 'function' && !isAsync(value),
)
/** An object of any fields. */
export const anyObject: OptionCheck = valueThat('an object', isPlain)

function unfit(value: unknown, path: string, expected: string, showsText = false): OptionFault {
  if (value === undefined) return { path, what: `is missing: give ${expected}` }
  const text = showsText && typeof value === 'string' && value !== '' ? `, ${quoted(value)}` : ''
  return { path, what: `is ${valueText(value)}${text}; expected ${expected}` }
}

/** As much of a text as tells which it is. */
function quoted(text: string): string {
  return `'${text.slice(0, 40)}'`
}

/** A value in words that hold none of its content: it may be a key. */
function valueText(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'function') return functionText(value)
  return isThenable(value)
    ? 'a promise (await it first)'
    : typeof value === 'object'
      ? objectText(value)
      : typeof value
}

function objectText(value: object): string {
  if (value instanceof Map) return 'a Map'
  if (value instanceof Set) return 'a Set'
  return value instanceof Date ? 'a Date' : 'an object'
}

function functionText(value: object): string {
  return isAsync(value) ? 'an async function' : 'a function'
}

/** Whether a function is written as async. One that is not may answer a promise all the same. */
export function isAsync(code: unknown): boolean {
  return /Async/.test(Object.prototype.toString.call(code))
}

/** Whether a value has to be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Whether a value says what it holds by fields: a `Map` would be taken for an object without any. */
function isPlain(value: unknown): value is { readonly [name: string]: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !isThenable(value) &&
    !isBuiltIn(value)
  )
}

function isBuiltIn(value: object): boolean {
  return value instanceof Map || value instanceof Set || value instanceof Date
}

function below(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/**
 * Refuses options that do not pass the check, with a `ConfigurationError` that names the option and what it should be.
 * `subject` says who was given them, such as `defineAgent`; `path` what they are called, where they have a name.
 */
export function requireOptions(subject: string, check: OptionCheck, given: unknown, path = ''): void {
  const fault = check(given, path)
  if (fault === undefined) return
  ignoreRejection(given)
  const place = fault.path === '' ? 'what it was given' : fault.path
  throw new ConfigurationError(`${subject}: ${place} ${fault.what}.`)
}

/** Lets no rejection of a promise end the process that was given in place of something else, and is not used. */
export function ignoreRejection(given: unknown): void {
  if (isThenable(given)) given.then(undefined, () => {})
}

/**
 * Calls a function of the application whose answer is used at once, and returns the answer. Throws a `ConfigurationError`
 * that names the function where it throws, answers with a promise, or answers what the check refuses. `subject` names the
 * function, such as `stopWhen of the agent desk`.
 */
export function answerOf<T>(subject: string, call: () => T, check?: OptionCheck): T {
  try {
    const answer = call()
    requireNoPromise(subject, answer)
    if (check) requireOptions(subject, check, answer, 'its answer')
    return answer
  } catch (cause) {
    // The runtime's own checks say already what to change.
    if (cause instanceof ConfigurationError) throw cause
    throw new ConfigurationError(
      `${subject} threw: ${sentenceOfError(cause)} Correct the function: the runtime needs its answer.`,
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
