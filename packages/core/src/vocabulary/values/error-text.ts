/** The longest text that an error gives to a ledger, in characters. */
const MAX_CHARACTERS = 2_000
/** Of an object that is no error and has no message, so many fields are named. */
const MAX_FIELDS = 10

/** What was thrown, in words. Anything can be thrown, also what throws when it is looked at. */
export function textOfError(thrown: unknown): string {
  return inWords(thrown, ({ name, message }) => message || name)
}

/** What was thrown, as a sentence that ends in one mark: many messages end in theirs, others in none. */
export function sentenceOfError(thrown: unknown): string {
  const text = textOfError(thrown).trimEnd()
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** What was thrown, in words, with the kind of error it is. */
export function namedTextOfError(thrown: unknown): string {
  return inWords(thrown, ({ name, message }) => `${name}: ${message}`)
}

function inWords(thrown: unknown, ofError: (error: Error) => string): string {
  try {
    const text = thrown instanceof Error ? ofError(thrown) : (objectText(thrown) ?? String(thrown))
    return text.slice(0, MAX_CHARACTERS)
  } catch {
    return 'something that cannot be put in words'
  }
}

/** What an object that is no `Error` says; `undefined` where its text says it. */
function objectText(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  // Some libraries throw objects with a message, and errors of another realm are no `Error` here.
  if ('message' in thrown && typeof thrown.message === 'string' && thrown.message !== '')
    return thrown.message
  const hasText = 'toString' in thrown && thrown.toString !== Object.prototype.toString
  return hasText ? undefined : namedFields(thrown)
}

/** What an object holds by names alone: a value may be a secret, such as a header of a request, and models read this text. */
function namedFields(thrown: object): string {
  const fields = Object.keys(thrown)
  if (fields.length === 0) return 'an object without a message'
  const others = fields.length > MAX_FIELDS ? ` and ${fields.length - MAX_FIELDS} more` : ''
  return `an object without a message, with the fields ${fields.slice(0, MAX_FIELDS).join(', ')}${others}`
}
