/** The longest text that an error gives to a ledger, in characters. */
const MAX_CHARACTERS = 2_000

/** What was thrown, in words. Anything can be thrown, also what throws when it is looked at. */
export function textOfError(thrown: unknown): string {
  return inWords(thrown, ({ name, message }) => message || name)
}

/** What was thrown, in words, with the kind of error it is. */
export function namedTextOfError(thrown: unknown): string {
  return inWords(thrown, ({ name, message }) => `${name}: ${message}`)
}

function inWords(thrown: unknown, ofError: (error: Error) => string): string {
  try {
    const text = thrown instanceof Error ? ofError(thrown) : String(thrown)
    return text.slice(0, MAX_CHARACTERS)
  } catch {
    return 'something that cannot be put in words'
  }
}
