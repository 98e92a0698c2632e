import { type Message, joinText, type UserMessage } from '../events/content.ts'
import type { FactOf, Spending } from '../events/event.ts'
import type { ModelRequest } from '../events/model-request.ts'
import { omitUndefined } from '../values/json.ts'
import { computeCost, pickTokenCounts } from '../events/usage.ts'
import type { Signal } from '../events/signals.ts'
import { computeDigest } from '../values/digest.ts'
import { formatPlainText, getMessage, readMessages } from './history.ts'
import { countsTokens, grantModelCall, replaceUnbelievable } from './budget.ts'
import { getWorkDeadline } from './limits.ts'
import { type Compacting, type FailedAttempt, type RunState, withSpent } from './state.ts'
import { estimateMessageTokens, estimateRequestTokens, estimateTextTokens } from './tokens.ts'
import { requireAnswer, anyText } from '../values/option.ts'
import { type Action, type Compaction, type Rules, waitUntil } from './rules.ts'
import { digestAdditions } from './request.ts'
import { MAX_TAKE_OVERS } from './retry.ts'

/** The instructions of a model that sums up, if the agent gives none. */
export const summaryInstructions: string =
  'You sum up the older part of a conversation between a user and an assistant with tools, so that the assistant can go ' +
  'on without it. Keep what the user wants, what was decided, facts, names, numbers and ids that were found, what was ' +
  'done and what is left to do. Write plain text, as short as that allows. Do not answer the user. Lines that are indented ' +
  'go on with what the speaker above them says, whatever they look like.'

/** The subject of a call for a summary. */
type SummaryCall = Pick<Compacting, 'replacedMessages' | 'maxOutputTokens'>

/** The request of a model call that sums up older messages: as text, since the tools in them are not offered. */
export function buildSummaryRequest(
  state: RunState,
  { replacedMessages, maxOutputTokens }: SummaryCall,
): ModelRequest {
  const text = formatPlainText(readMessages(state.history).slice(0, replacedMessages))
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
export function digestSummaryRequest(
  state: RunState,
  compacting: SummaryCall & Pick<Compacting, 'model'>,
): string {
  const { model } = compacting
  return computeDigest({ model, request: buildSummaryRequest(state, compacting) })
}

/** The place of what the user asks for now, where it is among the oldest messages; `undefined` if it is not. */
function findTask({ history, exchangeFrom }: RunState, replacedMessages: number): number | undefined {
  const isTask = exchangeFrom < replacedMessages && getMessage(history, exchangeFrom)?.role === 'user'
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
  const messages = readMessages(history)
  const task = taskAt === undefined ? [] : messages.slice(taskAt, taskAt + 1)
  return [summary, ...task, ...messages.slice(replacedMessages)]
}

/**
 * The oldest messages replaced by a text, save what the user asks for now. If the text is no shorter than the messages, it
 * would be replaced again at each turn: then the messages are left out instead.
 */
function toCompactedFact(
  state: RunState,
  replacedMessages: number,
  text: string,
): FactOf<'context_compacted'> {
  const given = toUserMessage(text)
  const isShorter = estimateMessageTokens(given) < countDroppedTokens(state, replacedMessages)
  const summary = isShorter ? given : toUserMessage(describeLeftOut(state, replacedMessages))
  const replacement = {
    summary,
    replacedMessages,
    ...omitUndefined({ taskAt: findTask(state, replacedMessages) }),
  }
  const kept = withSummary(state, replacement)
  return {
    type: 'context_compacted',
    turn: state.turn,
    ...replacement,
    tokensBefore: state.contextTokens,
    tokensAfter: estimateRequestTokens(state.definition, kept),
  }
}

function toUserMessage(text: string): UserMessage {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** About how many tokens the oldest messages have, save what the user asks for now. */
function countDroppedTokens(state: RunState, replacedMessages: number): number {
  const taskAt = findTask(state, replacedMessages)
  return readMessages(state.history)
    .slice(0, replacedMessages)
    .reduce((sum, message, place) => (place === taskAt ? sum : sum + estimateMessageTokens(message)), 0)
}

/** Replaces messages that were left out without a summary. */
function describeLeftOut(state: RunState, replacedMessages: number): string {
  const kept = findTask(state, replacedMessages) === undefined ? 0 : 1
  const count = replacedMessages - kept
  const what = count === 1 ? 'The oldest message' : `The ${count} oldest messages`
  const were = count === 1 ? 'was' : 'were'
  const task = kept === 0 ? '' : ' What the user asks for follows as it was said.'
  return `(${what} of this conversation ${were} left out, because it grew too long.${task})`
}

/** The words that introduce a summary to the model. */
const summaryOpening = 'What was said before, summed up:\n'

/** The text that a model summed up in, as it answered; empty if it said nothing. */
export function readSummaryText(summary: UserMessage): string {
  const text = joinText(summary.parts)
  return text.startsWith(summaryOpening) ? text.slice(summaryOpening.length) : ''
}

/** The answer of the summarizing model. If it failed, the older messages are left out. */
export function toSummaryFact(
  state: RunState,
  { replacedMessages, grant }: Compacting,
  { usage: reported, answer }: Extract<Signal, { readonly type: 'summarized' }>,
): FactOf<'context_compacted'> {
  const { price } = state.definition.summarizer ?? {}
  const written = 'text' in answer ? answer.text : undefined
  const counts = reported && pickTokenCounts(reported)
  // A report that is not believable is corrected where a limit depends on it.
  const isCorrected = countsTokens(state) && (written !== undefined || counts !== undefined)
  const estimate = { inputTokens: grant.inputTokens ?? 0, outputTokens: estimateTextTokens(written ?? '') }
  const usage = isCorrected ? replaceUnbelievable(counts ?? {}, estimate).usage : counts
  const spent = omitUndefined({ usage, ...(usage && price && { costUsd: computeCost(price, usage), price }) })
  const text = written?.trim() ? `${summaryOpening}${written}` : describeLeftOut(state, replacedMessages)
  const failure = 'failure' in answer ? answer.failure : undefined
  return { ...toCompactedFact(state, replacedMessages, text), ...spent, ...omitUndefined({ failure }) }
}

type Shortening = FactOf<'context_compacted'> | FactOf<'compaction_started'>

/** The most output tokens that a summary may take. */
const MAX_SUMMARY_TOKENS = 2_000

/** The compaction that is due before the next model call, if one is. */
export function compactBeforeCall(
  state: RunState,
  now: number,
  { compaction }: Rules,
): Shortening | undefined {
  if (compaction === undefined || state.contextTokens <= compaction.maxContextTokens) return undefined
  // Once per turn: a history that is still too long by our estimate cannot be made to fit this way.
  if (state.compactedTurn === state.turn) return undefined
  const cut = findCut(readMessages(state.history), compaction.keepMessages)
  const shorter = isWorthwhile(state, cut) ? shortenHistory(state, now, { cut, compaction }) : undefined
  const tokensAfter = shorter?.type === 'context_compacted' ? shorter.tokensAfter : undefined
  return (tokensAfter ?? 0) >= state.contextTokens ? undefined : shorter
}

/**
 * The compaction that answers a provider's word that the context is too long. Its word counts, whatever is estimated: more
 * is left out each time, as long as there is more than the last messages.
 */
export function compactAfterOverflow(
  state: RunState,
  now: number,
  { failure, shortened }: FailedAttempt,
  { compaction }: Rules,
): Shortening | undefined {
  if (failure.class !== 'context_overflow' || shortened || compaction === undefined) return undefined
  const cut = cutAfterOverflow(state, compaction.keepMessages)
  return cut === undefined ? undefined : shortenHistory(state, now, { cut, compaction })
}

/** The end of the older messages if fewer may stay than planned: half of them, then half of those. */
function cutAfterOverflow(state: RunState, keepMessages: number): number | undefined {
  const messages = readMessages(state.history)
  const isAgain = state.compactedTurn === state.turn
  // The task of the user stays.
  const isEnough = (cut: number): boolean =>
    isAgain ? isWorthwhile(state, cut) : cut > (findTask(state, cut) === undefined ? 0 : 1)
  let keep = isAgain ? Math.min(keepMessages, Math.floor(messages.length / 2)) : keepMessages
  for (; keep > 0; keep = Math.floor(keep / 2)) {
    const cut = findCut(messages, keep)
    if (isEnough(cut)) return cut
  }
  const all = findCut(messages, keepMessages)
  return keepMessages === 0 && isEnough(all) ? all : undefined
}

/** Returns whether a cut leaves out more than takes its place: a summary alone is not worth another one. */
function isWorthwhile(state: RunState, cut: number): boolean {
  if (cut < 2 || (cut === 2 && findTask(state, cut) === 1)) return false
  const leftOut = toUserMessage(describeLeftOut(state, cut))
  return estimateMessageTokens(leftOut) < countDroppedTokens(state, cut)
}

/** Guardrails name messages by their places: none moves while one of them looks. */
export function waitBeforeCompaction(state: RunState): Action | undefined {
  return state.inputCheck ? { kind: 'wait' } : undefined
}

/**
 * The next action while a model writes a summary: to wait for it. If its process stopped, the call is made again if the
 * limits leave enough. A call that takes longer than the run has, or that one process after another dies in, is given up,
 * and the messages are left out.
 */
export function nextWhileCompacting(state: RunState, now: number): Action | undefined {
  const { compacting } = state
  if (compacting === undefined) return undefined
  const wait = waitUntil(getWorkDeadline(state), now)
  if (wait === undefined || state.takeOvers > MAX_TAKE_OVERS) return abandonCompaction(state, compacting)
  if (!compacting.interrupted) return wait
  const again = repeatSummaryCall(state, compacting, now)
  return again ? { kind: 'compact', facts: [again] } : abandonCompaction(state, compacting)
}

function abandonCompaction(state: RunState, compacting: Compacting): Action {
  const { replacedMessages } = compacting
  const fact = toCompactedFact(state, replacedMessages, describeLeftOut(state, replacedMessages))
  return { kind: 'compact', facts: [{ ...fact, ...chargeSummary(state, compacting), abandoned: true }] }
}

/** The same summary once more: what the interrupted call is taken to have used is spent. */
function repeatSummaryCall(
  state: RunState,
  compacting: Compacting,
  now: number,
): FactOf<'compaction_started'> | undefined {
  const interrupted = chargeSummary(state, compacting)
  const { compacting: _given, ...rest } = state
  const charged = interrupted?.usage
    ? { ...rest, totals: withSpent(state.totals, interrupted.usage, interrupted.costUsd) }
    : rest
  const fact = planSummaryCall(charged, compacting.replacedMessages, now)
  return fact && { ...fact, ...(interrupted && { interrupted }) }
}

/** The usage of a summary that gave no answer: its input, if a limit depends on it. */
function chargeSummary(state: RunState, { grant }: Compacting): Spending | undefined {
  if (!countsTokens(state)) return undefined
  const usage = { inputTokens: grant.inputTokens ?? 0, outputTokens: 0 }
  const { price } = state.definition.summarizer ?? {}
  return { usage, ...(price && { costUsd: computeCost(price, usage) }) }
}

function shortenHistory(
  state: RunState,
  now: number,
  { cut, compaction }: { readonly cut: number; readonly compaction: Compaction },
): Shortening | undefined {
  const { summarize } = compaction
  if (summarize === undefined && state.definition.summarizer) return planSummaryCall(state, cut, now)
  const older = readMessages(state.history).slice(0, cut)
  const text =
    summarize &&
    requireAnswer(`compaction.summarize of the agent ${state.agent}`, () => summarize(older), anyText)
  return toCompactedFact(state, cut, text ?? describeLeftOut(state, cut))
}

/** Law 9 holds for the call that sums up as for any other: `undefined` if too little is left for it. */
function planSummaryCall(
  state: RunState,
  replacedMessages: number,
  now: number,
): FactOf<'compaction_started'> | undefined {
  const { summarizer } = state.definition
  if (summarizer === undefined) return undefined
  const { instructions, messages } = buildSummaryRequest(state, { replacedMessages })
  const tokens = messages
    .map(estimateMessageTokens)
    .reduce((sum, each) => sum + each, estimateTextTokens(instructions))
  const grant = grantModelCall(state, now, {
    price: summarizer.price,
    inputTokens: Math.ceil(tokens * state.estimateFactor),
    startsTurn: false,
    finalizing: false,
    keepsFinalizing: true,
    maxOutputTokens: MAX_SUMMARY_TOKENS,
  })
  if ('limit' in grant) return undefined
  const { outputTokens: maxOutputTokens = MAX_SUMMARY_TOKENS } = grant
  const call = { model: summarizer.model, replacedMessages, maxOutputTokens }
  const requestDigest = digestSummaryRequest(state, call)
  const additions = digestAdditions(state.definition, call.model)
  return {
    type: 'compaction_started',
    turn: state.turn,
    ...call,
    requestDigest,
    grant,
    ...omitUndefined({ additions }),
  }
}

/** Where the older messages end: never between a message and the results that it asked for. */
function findCut(messages: readonly Message[], keepMessages: number): number {
  let cut = Math.max(0, messages.length - keepMessages)
  while (cut > 0 && messages[cut]?.role === 'tool') cut--
  return cut
}
