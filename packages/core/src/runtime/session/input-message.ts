import { ConfigurationError } from '../../values/errors.ts'
import { correctMessage, type UserMessage, userMessage, type UserPart } from '../../events/content.ts'
import { deepFreeze, isJson } from '../../values/json.ts'
import { faultOf } from '../../values/schema.ts'

/** A user's message from what a caller gives. Throws a `ConfigurationError` for what no model could be shown. */
export function messageOf(input: string | readonly UserPart[]): UserMessage {
  const parts = typeof input === 'string' ? [{ type: 'text' as const, text: input }] : input
  const given: UserMessage = { role: 'user', parts }
  // The copy is checked, and not what it was made of, which may say something else each time that it is read.
  const message = isJson(given) ? deepFreeze(given) : given
  if (input === '' || (Array.isArray(input) && input.length === 0)) {
    throw new ConfigurationError(
      'A run needs input: a text, or message parts; providers refuse an empty message.',
    )
  }
  const fault = faultOf(userMessage, message)
  if (fault === undefined && isJson(message)) return deepFreeze(correctMessage(message))
  const place = fault ? ` at ${fault.path}: ${fault.what}` : ': JSON cannot carry it'
  throw new ConfigurationError(`The input of a run is wrong${place}. Give a text, or message parts.`)
}
