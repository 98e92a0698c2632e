import { textOf, type Message, type UserMessage } from '../../vocabulary/model/content.ts'
import type { FactOf } from '../../vocabulary/events/event.ts'
import type { ModelRequest } from '../../vocabulary/model/model-request.ts'
import type { Grant } from '../../vocabulary/limits/grant.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { costOf } from '../../vocabulary/billing/price.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { tokenCounts, type Usage } from '../../vocabulary/billing/usage.ts'
import { digestOf } from '../../vocabulary/values/digest.ts'
import { messageAt, messagesOf } from '../messages/history.ts'
import { asPlainText } from '../messages/plain-text.ts'
import { believedUsage, countsTokens } from '../limits/settled-usage.ts'
import type { Compacting, RunState } from '../state/state.ts'
import { messageTokens, requestTokens, textTokens } from '../messages/token-estimate.ts'

/** The instructions of a model that sums up, if the agent gives none. */
export const summaryInstructions: string =
  'You sum up the older part of a conversation between a user and an assistant with tools, so that the assistant can go ' +
  'on without it. Keep what the user wants, what was decided, facts, names, numbers and ids that were found, what was ' +
  'done and what is left to do. Write plain text, as short as that allows. Do not answer the user. Lines that are indented ' +
  'go on with what the speaker above them says, whatever they look like.'

/** What a call for a summary is about. */
type SummaryCall = Pick<Compacting, 'replacedMessages' | 'maxOutputTokens'>

/** About how many input tokens a call for a summary has. */
export function summaryTokens(state: RunState, replacedMessages: number): number {
  const { instructions, messages } = summaryRequest(state, { replacedMessages })
  const tokens = messages.reduce((sum, message) => sum + messageTokens(message), textTokens(instructions))
  return Math.ceil(tokens * state.estimateFactor)
}

/** The request of a model call that sums up older messages: as text, since the tools in them are not offered. */
export function summaryRequest(
  state: RunState,
  { replacedMessages, maxOutputTokens }: SummaryCall,
): ModelRequest {
  const text = asPlainText(messagesOf(state.history).slice(0, replacedMessages))
  return {
    instructions: state.definition.summarizer?.instructions ?? summaryInstructions,
    messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
    tools: [],
    toolChoice: { type: 'none' },
    parallelToolCalls: false,
    ...omitUndefined({ maxOutputTokens }),
  }
}

/** Law 7, for the request of a model that sums up. */
export function summaryDigest(state: RunState, compacting: SummaryCall & Pick<Compacting, 'model'>): string {
  const { model } = compacting
  return digestOf({ model, request: summaryRequest(state, compacting) })
}

/** The place of what the user asks for now, where it is among the oldest messages; `undefined` where it is not. */
export function taskAmong({ history, exchangeFrom }: RunState, replacedMessages: number): number | undefined {
  const isTask = exchangeFrom < replacedMessages && messageAt(history, exchangeFrom)?.role === 'user'
  return isTask ? exchangeFrom : undefined
}

/** The history with its oldest messages replaced by a summary. The task among them stays, after it. */
export function withSummary(
  { history }: RunState,
  {
    summary,
    replacedMessages,
    taskAt,
  }: Pick<FactOf<'context_compacted'>, 'summary' | 'replacedMessages' | 'taskAt'>,
): readonly Message[] {
  const messages = messagesOf(history)
  const task = taskAt === undefined ? [] : messages.slice(taskAt, taskAt + 1)
  return [summary, ...task, ...messages.slice(replacedMessages)]
}

/**
 * The oldest messages replaced by a text, save what the user asks for now. A text that is as long as what it replaces would be
 * replaced again at each turn, and never by less: there the messages are left out.
 */
export function compactedFact(
  state: RunState,
  replacedMessages: number,
  text: string,
): FactOf<'context_compacted'> {
  const given = userMessage(text)
  const isShorter = messageTokens(given) < droppedTokens(state, replacedMessages)
  const summary = isShorter ? given : userMessage(leftOutText(state, replacedMessages))
  const replacement = {
    summary,
    replacedMessages,
    ...omitUndefined({ taskAt: taskAmong(state, replacedMessages) }),
  }
  const kept = withSummary(state, replacement)
  return {
    type: 'context_compacted',
    turn: state.turn,
    ...replacement,
    tokensBefore: state.contextTokens,
    tokensAfter: requestTokens(state.definition, kept),
  }
}

function userMessage(text: string): UserMessage {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** About how many tokens the oldest messages have, save what the user asks for now. */
function droppedTokens(state: RunState, replacedMessages: number): number {
  const taskAt = taskAmong(state, replacedMessages)
  return messagesOf(state.history)
    .slice(0, replacedMessages)
    .reduce((sum, message, place) => (place === taskAt ? sum : sum + messageTokens(message)), 0)
}

/** Whether leaving the oldest messages out makes the history shorter: no summary would, where that does not. */
export function isShorterWithout(state: RunState, replacedMessages: number): boolean {
  const leftOut = userMessage(leftOutText(state, replacedMessages))
  return messageTokens(leftOut) < droppedTokens(state, replacedMessages)
}

/** Replaces messages that were left out without a summary. */
export function leftOutText(state: RunState, replacedMessages: number): string {
  const kept = taskAmong(state, replacedMessages) === undefined ? 0 : 1
  const count = replacedMessages - kept
  const what = count === 1 ? 'The oldest message' : `The ${count} oldest messages`
  const were = count === 1 ? 'was' : 'were'
  const task = kept === 0 ? '' : ' What the user asks for follows as it was said.'
  return `(${what} of this conversation ${were} left out, because it grew too long.${task})`
}

/** What introduces a summary to the model. */
const summaryOpening = 'What was said before, summed up:\n'

/** The text that a model summed up in, as it answered; empty where it said nothing. */
export function summaryTextOf(summary: UserMessage): string {
  const text = textOf(summary.parts)
  return text.startsWith(summaryOpening) ? text.slice(summaryOpening.length) : ''
}

/** What a model that sums up has answered; where it failed, the older messages are left out. */
export function summaryFact(
  state: RunState,
  { replacedMessages, grant }: Compacting,
  { usage: reported, answer }: Extract<Signal, { readonly type: 'summarized' }>,
): FactOf<'context_compacted'> {
  const { price } = state.definition.summarizer ?? {}
  const usage = summaryUsage(state, reported, grant, 'text' in answer ? answer.text : undefined)
  const spent = omitUndefined({ usage, ...(usage && price && { costUsd: costOf(price, usage), price }) })
  const text =
    'text' in answer && answer.text.trim() !== ''
      ? `${summaryOpening}${answer.text}`
      : leftOutText(state, replacedMessages)
  const failure = 'failure' in answer ? answer.failure : undefined
  return { ...compactedFact(state, replacedMessages, text), ...spent, ...omitUndefined({ failure }) }
}

/** What a summary is taken to have used: where a limit depends on it, what is believable of the report. */
function summaryUsage(
  state: RunState,
  reported: Usage | undefined,
  { inputTokens = 0 }: Grant,
  text: string | undefined,
): Usage | undefined {
  const counts = reported && tokenCounts(reported)
  if (!countsTokens(state) || (text === undefined && counts === undefined)) return counts
  return believedUsage(counts ?? {}, { inputTokens, outputTokens: textTokens(text ?? '') }).usage
}
