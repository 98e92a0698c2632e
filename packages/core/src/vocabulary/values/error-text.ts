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

/** The longest stack that a ledger holds, with those of its causes, in characters. */
const MAX_STACK_CHARACTERS = 8_000
const MAX_CAUSES = 8

/** The stack of what was thrown, and of its causes, for the record. Anything can be thrown, also what throws when it is looked at. */
export function stackOfError(thrown: unknown): string {
  const stacks: string[] = []
  try {
    let error = thrown
    for (let depth = 0; depth < MAX_CAUSES && error !== undefined; depth++) {
      const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : undefined
      stacks.push(stack ?? namedTextOfError(error))
      error = typeof error === 'object' && error !== null && 'cause' in error ? error.cause : undefined
    }
  } catch {
    stacks.push('something that cannot be put in words')
  }
  return stacks.join('\nCaused by: ').slice(0, MAX_STACK_CHARACTERS)
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
