import { ConfigurationError } from '../../values/errors.ts'
import {
  correctMessage,
  type Message,
  message as messageSchema,
  type ModelRef,
  type UserMessage,
  type UserPart,
} from '../../events/content.ts'
import { deepFreeze, isJson } from '../../values/json.ts'
import { faultOf } from '../../values/schema.ts'
import { appendMessage, carriedMessages, historyOf, pairingFault } from '../../machine/history.ts'
import { messageOf } from './input-message.ts'
import type { Past } from './session-past.ts'

/** A message that holds one text, in short. */
export interface TextMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** A message of a conversation, as results give them in `messages`, or in short. */
export type InputMessage = Message | TextMessage

/** What a run is asked: a text, the parts of a message, or a conversation whose last message is the user's. */
export type RunInput = string | readonly UserPart[] | readonly InputMessage[]

/** The message that a run answers, and what the caller says was said before it. */
export interface GivenInput {
  readonly message: UserMessage
  readonly before: readonly Message[]
}

/** The model of a reply that a caller wrote in short: no model is known to have written it. */
const givenModel: ModelRef = { provider: 'given', api: 'given', modelId: 'given' }

/** Returns a frozen copy of what a caller gives. Throws a `ConfigurationError` for what no model could be shown. */
export function givenInput(input: RunInput): GivenInput {
  if (!isConversation(input)) return { message: messageOf(input), before: [] }
  const messages = input.map((given, index) => wholeMessage(given, index))
  const fault = pairingFault(messages)
  if (fault !== undefined) {
    throw wrong(
      `${fault}. Keep each call together with its result, in the order of the calls, and give no result without its call`,
    )
  }
  const last = messages.at(-1)
  if (last?.role !== 'user') {
    throw wrong(
      `its last message, at ${messages.length - 1}, has the role ${last?.role}, and a run answers a message of the user. Add one, as in [...result.messages, { role: 'user', content: '…' }]`,
    )
  }
  return { message: messageOf(last.parts), before: Object.freeze(messages.slice(0, -1)) }
}

/** The past of a run with what its caller says was said after that; no guardrail has passed it. */
export function withGiven(past: Past, before: readonly Message[]): Past {
  if (before.length === 0) return past
  const { history = [], uncheckedFrom = history.length } = past
  return {
    ...past,
    history: carriedMessages(before.reduce(appendMessage, historyOf(history))),
    uncheckedFrom,
  }
}

function isConversation(input: RunInput): input is readonly InputMessage[] {
  return Array.isArray(input) && input.some((item: unknown) => Object.hasOwn(Object(item) as object, 'role'))
}

function wholeMessage(given: InputMessage, index: number): Message {
  const full = given !== null && typeof given === 'object' && 'content' in given ? inFull(given) : given
  // The copy is checked, and not what it was made of, which may say something else each time that it is read.
  const whole = isJson(full) ? deepFreeze(full) : full
  const fault = faultOf(messageSchema, whole)
  const isEmpty = fault === undefined && whole.role === 'user' && whole.parts.length === 0
  if (fault === undefined && !isEmpty && isJson(whole)) return deepFreeze(correctMessage(whole))
  const what = fault
    ? `at ${index}.${fault.path}: ${fault.what}`
    : `at ${index}: ${isEmpty ? 'it is empty' : 'JSON cannot carry it'}`
  throw wrong(
    `${what}. A message is { role: 'user', content: 'a text' }, the same with the role assistant, or one of result.messages`,
  )
}

/** An empty text becomes no part, as providers refuse one. */
function inFull({ role, content }: TextMessage): Message {
  const parts = content === '' ? [] : [{ type: 'text' as const, text: content }]
  if (role !== 'assistant') return { role, parts }
  return { role, parts, model: givenModel, stopReason: 'end', partial: false }
}

function wrong(what: string): ConfigurationError {
  return new ConfigurationError(`The input of a run cannot be shown to a model: ${what}.`)
}
