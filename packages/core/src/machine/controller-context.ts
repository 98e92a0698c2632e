import type { Message } from '../vocabulary/content.ts'
import type { FactOf } from '../vocabulary/event.ts'
import type { Action } from './action.ts'
import { compactedFact, leftOutText, summaryDigest } from './compaction.ts'
import { messagesOf } from './history.ts'
import { reserveCall } from './limit-check.ts'
import { TAKE_OVERS_MAX } from './retry.ts'
import type { Compaction, Rules } from './rules.ts'
import type { FailedAttempt, RunState } from './state.ts'

type Shortening = FactOf<'context_compacted'> | FactOf<'compaction_started'>

/** The most output tokens that a summary may take. */
const SUMMARY_TOKENS_MAX = 2_000

/** The compaction that is due before the next model call, if one is. */
export function compactionBeforeCall(
  state: RunState,
  now: number,
  { compaction }: Rules,
): Shortening | undefined {
  if (compaction === undefined || state.contextTokens <= compaction.contextTokensMax) return undefined
  return compact(state, now, compaction)
}

/** The compaction that answers a provider's word that the context is too long: one a turn. */
export function compactionAfterOverflow(
  state: RunState,
  now: number,
  { failure, shortened }: FailedAttempt,
  { compaction }: Rules,
): Shortening | undefined {
  if (failure.class !== 'context_overflow' || shortened || compaction === undefined) return undefined
  return compact(state, now, compaction)
}

/** Guardrails name messages by their places: none moves while one of them looks. */
export function beforeCompaction(state: RunState): Action | undefined {
  return state.inputCheck ? { kind: 'wait' } : undefined
}

/** What is owed while a model sums up: to wait for it, unless one process after the other dies over it. */
export function whileCompacting(state: RunState): Action | undefined {
  const { compacting } = state
  if (compacting === undefined) return undefined
  if (state.takeOvers <= TAKE_OVERS_MAX) return { kind: 'wait' }
  const { replacedMessages } = compacting
  return { kind: 'compact', facts: [compactedFact(state, replacedMessages, leftOutText(replacedMessages))] }
}

function compact(state: RunState, now: number, compaction: Compaction): Shortening | undefined {
  // Once a turn: what is still too long then cannot be made to fit this way.
  if (state.compactedTurn === state.turn) return undefined
  const messages = messagesOf(state.history)
  const cut = cutOf(messages, compaction.keepMessages)
  if (cut < 2) return undefined
  const { summarizer } = state.definition
  if (compaction.summarize === undefined && summarizer) {
    // Law 9 holds for the call that sums up as for any other.
    const reserved = reserveCall(state, now, summarizer.price)
    if ('limit' in reserved) return undefined
    const maxOutputTokens = Math.min(reserved.outputTokens, SUMMARY_TOKENS_MAX)
    const compacting = { model: summarizer.model, replacedMessages: cut, maxOutputTokens }
    const requestDigest = summaryDigest(state, compacting)
    return { type: 'compaction_started', turn: state.turn, ...compacting, requestDigest }
  }
  const text = compaction.summarize?.(messages.slice(0, cut)) ?? leftOutText(cut)
  const fact = compactedFact(state, cut, text)
  return (fact.tokensAfter ?? 0) >= state.contextTokens ? undefined : fact
}

/** Where the older messages end: never between a message and the results that it asked for. */
function cutOf(messages: readonly Message[], keepMessages: number): number {
  let cut = Math.max(0, messages.length - keepMessages)
  while (cut > 0 && messages[cut]?.role === 'tool') cut--
  return cut
}
