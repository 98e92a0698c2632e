import { ConfigurationError } from '../errors.ts'
import { isThenable, type OptionCheck } from './option.ts'

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
