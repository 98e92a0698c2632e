import type { Message, UserMessage } from '../vocabulary/content.ts'
import type { FactOf } from '../vocabulary/event.ts'
import type { Json } from '../vocabulary/json.ts'
import type { ModelRequest } from '../vocabulary/model-request.ts'
import { present } from '../vocabulary/present.ts'
import { costOf } from '../vocabulary/price.ts'
import type { Signal } from '../vocabulary/signal.ts'
import { digestOf } from './digest.ts'
import { messagesOf } from './history.ts'
import { asPlainText } from './plain-text.ts'
import type { Compacting, RunState } from './state.ts'
import { requestTokens } from './token-estimate.ts'

/** What a model that sums up is told, where the agent says nothing else. */
export const summaryInstructions: string =
  'You sum up the older part of a conversation between a user and an assistant with tools, so that the assistant can go ' +
  'on without it. Keep what the user wants, what was decided, facts, names, numbers and ids that were found, what was ' +
  'done and what is left to do. Write plain text, as short as that allows. Do not answer the user.'

/** The request of a model call that sums up older messages: as text, since the tools in them are not offered. */
export function summaryRequest(
  state: RunState,
  { replacedMessages, maxOutputTokens }: Omit<Compacting, 'model'>,
): ModelRequest {
  const text = asPlainText(messagesOf(state.history).slice(0, replacedMessages))
  return {
    instructions: state.definition.summarizer?.instructions ?? summaryInstructions,
    messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
    ...{ tools: [], toolChoice: { type: 'none' }, parallelToolCalls: false },
    ...present({ maxOutputTokens }),
  }
}

/** Law 7, for the request of a model that sums up. */
export function summaryDigest(state: RunState, compacting: Compacting): string {
  const { model } = compacting
  return digestOf({ model: { ...model }, request: summaryRequest(state, compacting) as unknown as Json })
}

/** The oldest messages replaced by a text. */
export function compactedFact(
  state: RunState,
  replacedMessages: number,
  text: string,
): FactOf<'context_compacted'> {
  const summary: UserMessage = { role: 'user', parts: [{ type: 'text', text }] }
  const kept: readonly Message[] = [summary, ...messagesOf(state.history).slice(replacedMessages)]
  return {
    ...{ type: 'context_compacted', turn: state.turn, summary, replacedMessages },
    ...{ tokensBefore: state.contextTokens, tokensAfter: requestTokens(state.definition, kept) },
  }
}

/** What stands in the place of messages that nobody summed up. */
export function leftOutText(messages: number): string {
  return `(The ${messages} oldest messages of this conversation were left out, because it grew too long.)`
}

/** What a model that sums up has answered; where it failed, the older messages are left out. */
export function summaryFact(
  state: RunState,
  { replacedMessages }: Compacting,
  { usage, answer }: Extract<Signal, { readonly type: 'summarized' }>,
): FactOf<'context_compacted'> {
  const { price } = state.definition.summarizer ?? {}
  const spent = present({ usage, ...(usage && price && { costUsd: costOf(price, usage), price }) })
  const text =
    'text' in answer && answer.text.trim() !== ''
      ? `What was said before, summed up:\n${answer.text}`
      : leftOutText(replacedMessages)
  const failure = 'failure' in answer ? answer.failure : undefined
  return { ...compactedFact(state, replacedMessages, text), ...spent, ...present({ failure }) }
}
