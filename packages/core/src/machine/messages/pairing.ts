import { ConfigurationError } from '../../vocabulary/errors.ts'
import type { Message } from '../../vocabulary/model/content.ts'
import { anyObject, listOf } from '../../vocabulary/options/option.ts'
import { requireNoPromise } from '../../vocabulary/options/answer-of.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'

/**
 * Law 3, for messages of any origin: returns why providers would refuse them. After each message that asked for tools
 * come its results, all of them, in its order; results come nowhere else. `undefined` if nothing is wrong. Whether the
 * messages before `from` are followed by what they have to be followed by is known.
 */
export function pairingFault(messages: readonly Message[], from: number = 0): string | undefined {
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message
    const next = messages[index + 1]
    if (message.role === 'assistant') {
      const asked = message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      const answered = next?.role === 'tool' ? next.results.map(({ toolCallId }) => toolCallId) : []
      if (asked.join() !== answered.join()) return `message ${index} and its tool results do not match`
    } else if (next?.role === 'tool') {
      return `the tool results at ${index + 1} answer no message`
    }
  }
  return messages[0]?.role === 'tool' ? 'the tool results at 0 answer no message' : undefined
}

/** Refuses what an agent's code would show a model, and no provider would take. `subject` names the code. */
export function requireShown(messages: readonly Message[] | undefined, subject: string): void {
  if (messages === undefined) return
  requireNoPromise(subject, messages)
  requireOptions(subject, listOf(anyObject), messages, 'messages')
  const fault = messages.length === 0 ? 'nothing is left to be shown' : pairingFault(messages)
  if (fault === undefined) return
  throw new ConfigurationError(
    `${subject} returned messages that no provider takes: ${fault}. Keep at least one message, and each call together with its result.`,
  )
}
