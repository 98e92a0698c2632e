import { ConfigurationError } from '../errors.ts'
import { isThenable, type OptionCheck } from './option.ts'

/**
 * Refuses options that do not pass the check, with a `ConfigurationError` that names the option and what it should be.
 * `subject` says who was given them, such as `defineAgent`; `path` what they are called, where they have a name.
 */
export function requireOptions(subject: string, check: OptionCheck, given: unknown, path = ''): void {
  const fault = check(given, path)
  if (fault === undefined) return
  const place = fault.path === '' ? 'what it was given' : fault.path
  throw new ConfigurationError(`${subject}: ${place} ${fault.what}.`)
}

/** Refuses a promise where the answer of the caller's code is used at once. `subject` names the code. */
export function requireNoPromise(subject: string, answer: unknown): void {
  if (!isThenable(answer)) return
  // What becomes of it is of no interest any more, and must not end the process.
  answer.then(undefined, () => {})
  throw new ConfigurationError(
    `${subject} returned a promise, but its result is used at once. Make it a function that is not async: load what it needs before the run, and pass it in.`,
  )
}
