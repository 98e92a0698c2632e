import type { Message } from '../../vocabulary/model/content.ts'
import type { FactOf, Spending } from '../../vocabulary/events/event.ts'
import { answerOf } from '../../vocabulary/options/answer-of.ts'
import { anyText } from '../../vocabulary/options/option.ts'
import { costOf } from '../../vocabulary/billing/price.ts'
import type { Action } from '../state/action.ts'
import {
  compactedFact,
  isShorterWithout,
  leftOutText,
  summaryDigest,
  summaryTokens,
  taskAmong,
} from '../prompt/compaction.ts'
import { additionsOf } from '../prompt/model-request.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { messagesOf } from '../messages/history.ts'
import { workDeadline } from '../limits/deadlines.ts'
import { grantModelCall, isLimitFinding } from '../limits/model-call-limit-check.ts'
import { MAX_TAKE_OVERS } from '../limits/retry.ts'
import type { Compaction, Rules } from '../state/rules.ts'
import { withSpent } from '../state/totals.ts'
import { countsTokens } from '../limits/settled-usage.ts'
import type { Compacting, FailedAttempt, RunState } from '../state/state.ts'

type Shortening = FactOf<'context_compacted'> | FactOf<'compaction_started'>

/** The most output tokens that a summary may take. */
const MAX_SUMMARY_TOKENS = 2_000

/** The compaction that is due before the next model call, if one is. */
export function compactionBeforeCall(
  state: RunState,
  now: number,
  { compaction }: Rules,
): Shortening | undefined {
  if (compaction === undefined || state.contextTokens <= compaction.maxContextTokens) return undefined
  // Once a turn: what is still too long by our own estimate then cannot be made to fit this way.
  if (state.compactedTurn === state.turn) return undefined
  const cut = cutOf(messagesOf(state.history), compaction.keepMessages)
  const shorter = isWorthwhile(state, cut) ? shortenHistory(state, now, { cut, compaction }) : undefined
  const tokensAfter = shorter?.type === 'context_compacted' ? shorter.tokensAfter : undefined
  return (tokensAfter ?? 0) >= state.contextTokens ? undefined : shorter
}

/**
 * The compaction that answers a provider's word that the context is too long. Its word counts, whatever is estimated: more
 * is left out each time, as long as there is more than the last messages.
 */
export function compactionAfterOverflow(
  state: RunState,
  now: number,
  { failure, shortened }: FailedAttempt,
  { compaction }: Rules,
): Shortening | undefined {
  if (failure.class !== 'context_overflow' || shortened || compaction === undefined) return undefined
  const cut = cutAfterOverflow(state, compaction.keepMessages)
  return cut === undefined ? undefined : shortenHistory(state, now, { cut, compaction })
}

/** Where the older messages end when fewer have to stay than were to: half of them, and half of those again. */
function cutAfterOverflow(state: RunState, keepMessages: number): number | undefined {
  const messages = messagesOf(state.history)
  const isAgain = state.compactedTurn === state.turn
  const isEnough = (cut: number): boolean => (isAgain ? isWorthwhile(state, cut) : droppedBy(state, cut) > 0)
  let keep = isAgain ? Math.min(keepMessages, Math.floor(messages.length / 2)) : keepMessages
  for (; keep > 0; keep = Math.floor(keep / 2)) {
    const cut = cutOf(messages, keep)
    if (isEnough(cut)) return cut
  }
  const all = cutOf(messages, keepMessages)
  return keepMessages === 0 && isEnough(all) ? all : undefined
}

/** Whether a cut leaves out more than takes its place: a summary alone is not worth another one. */
function isWorthwhile(state: RunState, cut: number): boolean {
  return cut >= 2 && !(cut === 2 && taskAmong(state, cut) === 1) && isShorterWithout(state, cut)
}

/** How many messages a cut leaves out: what the user asks for stays. */
function droppedBy(state: RunState, cut: number): number {
  return cut - (taskAmong(state, cut) === undefined ? 0 : 1)
}

/** Guardrails name messages by their places: none moves while one of them looks. */
export function waitBeforeCompaction(state: RunState): Action | undefined {
  return state.inputCheck ? { kind: 'wait' } : undefined
}

/**
 * The next action while a model sums up: to wait for it. A call whose process stopped is made again, as far as there is
 * something left for it; one that takes longer than the run has, or that one process after the other dies over, is
 * given up, and the messages are left out.
 */
export function nextWhileCompacting(state: RunState, now: number): Action | undefined {
  const { compacting } = state
  if (compacting === undefined) return undefined
  const deadline = workDeadline(state) ?? Infinity
  if (now >= deadline || state.takeOvers > MAX_TAKE_OVERS) return abandonCompaction(state, compacting)
  if (compacting.interrupted) {
    const again = repeatSummaryCall(state, compacting, now)
    return again ? { kind: 'compact', facts: [again] } : abandonCompaction(state, compacting)
  }
  return deadline === Infinity ? { kind: 'wait' } : { kind: 'wait', wakeAt: deadline }
}

function abandonCompaction(state: RunState, compacting: Compacting): Action {
  const { replacedMessages } = compacting
  const fact = compactedFact(state, replacedMessages, leftOutText(state, replacedMessages))
  return { kind: 'compact', facts: [{ ...fact, ...chargedSummary(state, compacting), abandoned: true }] }
}

/** The same summary once more: what the interrupted call is taken to have used is spent. */
function repeatSummaryCall(
  state: RunState,
  compacting: Compacting,
  now: number,
): FactOf<'compaction_started'> | undefined {
  const interrupted = chargedSummary(state, compacting)
  const { compacting: _given, ...rest } = state
  const charged = interrupted?.usage
    ? { ...rest, totals: withSpent(state.totals, interrupted.usage, interrupted.costUsd) }
    : rest
  const fact = summaryCall(charged, compacting.replacedMessages, now)
  return fact && { ...fact, ...(interrupted && { interrupted }) }
}

/** What a summary that gave no answer is taken to have used: its input, where a limit depends on it. */
function chargedSummary(state: RunState, { grant }: Compacting): Spending | undefined {
  if (!countsTokens(state)) return undefined
  const usage = { inputTokens: grant.inputTokens ?? 0, outputTokens: 0 }
  const { price } = state.definition.summarizer ?? {}
  return { usage, ...(price && { costUsd: costOf(price, usage) }) }
}

function shortenHistory(
  state: RunState,
  now: number,
  { cut, compaction }: { readonly cut: number; readonly compaction: Compaction },
): Shortening | undefined {
  const { summarizer } = state.definition
  if (compaction.summarize === undefined && summarizer) {
    return summaryCall(state, cut, now)
  }
  return compactedFact(state, cut, summaryOf(state, cut, compaction) ?? leftOutText(state, cut))
}

/** What the agent's code says in the place of the older messages, where it says anything. */
function summaryOf(state: RunState, cut: number, { summarize }: Compaction): string | undefined {
  const older = messagesOf(state.history).slice(0, cut)
  return (
    summarize && answerOf(`compaction.summarize of the agent ${state.agent}`, () => summarize(older), anyText)
  )
}

/** Law 9 holds for the call that sums up as for any other: `undefined` where too little is left for it. */
function summaryCall(
  state: RunState,
  replacedMessages: number,
  now: number,
): FactOf<'compaction_started'> | undefined {
  const { summarizer } = state.definition
  if (summarizer === undefined) return undefined
  const grant = grantModelCall(state, now, {
    price: summarizer.price,
    inputTokens: summaryTokens(state, replacedMessages),
    startsTurn: false,
    finalizing: false,
    keepsFinalizing: true,
    maxOutputTokens: MAX_SUMMARY_TOKENS,
  })
  if (isLimitFinding(grant)) return undefined
  const { outputTokens: maxOutputTokens = MAX_SUMMARY_TOKENS } = grant
  const call = { model: summarizer.model, replacedMessages, maxOutputTokens }
  const requestDigest = summaryDigest(state, call)
  const additions = additionsOf(state.definition, call.model)
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
function cutOf(messages: readonly Message[], keepMessages: number): number {
  let cut = Math.max(0, messages.length - keepMessages)
  while (cut > 0 && messages[cut]?.role === 'tool') cut--
  return cut
}
