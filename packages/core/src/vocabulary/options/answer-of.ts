import { ConfigurationError } from '../errors.ts'
import { sentenceOfError } from '../values/error-text.ts'
import { isThenable, type OptionCheck } from './option.ts'
import { ignoreRejection, requireOptions } from './require-options.ts'

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
