import { ConfigurationError } from '../../values/errors.ts'
import { asPlainText } from '../../machine/history.ts'
import type { Message } from '../../events/content.ts'
import {
  answerOf,
  anyText,
  fields,
  maybe,
  type OptionCheck,
  plainFunction,
  requireOptions,
} from '../../values/option.ts'

/** How a history is folded into one message. */
export interface FoldHistoryOptions {
  /** The line above the conversation; `What was said and done before you took over:` if not given. `''` for none. */
  readonly heading?: string | undefined
  /** Returns the text of the conversation. Default: `historyText`. Pure, and not async. */
  readonly render?: ((messages: readonly Message[]) => string) | undefined
}

/** Checks how a history is folded. */
export const foldOptions: OptionCheck = fields<FoldHistoryOptions>({
  heading: maybe(anyText),
  render: maybe(plainFunction),
})

/**
 * Returns a filter for handoffs, or for `prepareTurn`, that folds the whole history into one message of the user: the next agent
 * reads what happened as a report, and not as words of its own. Throws a `ConfigurationError` for options that cannot work.
 */
export function foldHistory(
  given: FoldHistoryOptions = {},
): (messages: readonly Message[]) => readonly Message[] {
  requireOptions('foldHistory', foldOptions, given)
  const { heading = 'What was said and done before you took over:', render = asPlainText } = given
  return (messages) => {
    if (messages.length === 0) return messages
    const rendered = answerOf('render of foldHistory', () => render(messages), anyText)
    if (heading + rendered === '') {
      throw new ConfigurationError(
        'render of foldHistory: its answer is an empty text, and heading is empty, so the next agent would read nothing of the past. Let it answer a text that is not empty.',
      )
    }
    const text = heading === '' ? rendered : `${heading}\n${rendered}`
    return [{ role: 'user', parts: [{ type: 'text', text }] }]
  }
}

/** The filter of `foldHistory()`. */
export const foldedHistory: (messages: readonly Message[]) => readonly Message[] = foldHistory()
