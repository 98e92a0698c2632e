import { ConfigurationError } from '../errors.ts'
import type { UserMessage, UserPart } from '../vocabulary/content.ts'

/** A user's message from what a caller gives. */
export function messageOf(input: string | readonly UserPart[]): UserMessage {
  if (typeof input === 'string') {
    if (input !== '') return { role: 'user', parts: [{ type: 'text', text: input }] }
  } else if (Array.isArray(input) && input.length > 0) {
    return { role: 'user', parts: input }
  }
  throw new ConfigurationError(
    'A run needs input: a text, or message parts; providers refuse an empty message.',
  )
}
