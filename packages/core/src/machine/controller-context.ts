import type { Message, UserMessage } from '../vocabulary/content.ts'
import type { FactOf } from '../vocabulary/event.ts'
import { messagesOf } from './history.ts'
import type { Compaction, Rules } from './rules.ts'
import type { FailedAttempt, RunState } from './state.ts'
import { definitionTokens, messageTokens } from './token-estimate.ts'

/** The compaction that is due before the next model call, if one is. */
export function compactionBeforeCall(
  state: RunState,
  { compaction }: Rules,
): FactOf<'context_compacted'> | undefined {
  if (compaction === undefined || state.contextTokens <= compaction.contextTokensMax) return undefined
  return compact(state, compaction)
}

/** The compaction that answers a provider's word that the context is too long: one a turn. */
export function compactionAfterOverflow(
  state: RunState,
  { failure, shortened }: FailedAttempt,
  { compaction }: Rules,
): FactOf<'context_compacted'> | undefined {
  if (failure.class !== 'context_overflow' || shortened || compaction === undefined) return undefined
  return compact(state, compaction)
}

function compact(state: RunState, compaction: Compaction): FactOf<'context_compacted'> | undefined {
  // Once a turn: what is still too long then cannot be made to fit this way.
  if (state.compactedTurn === state.turn) return undefined
  const messages = messagesOf(state.history)
  const cut = cutOf(messages, compaction.keepMessages)
  if (cut < 2) return undefined
  const text = compaction.summarize(messages.slice(0, cut))
  const summary: UserMessage = { role: 'user', parts: [{ type: 'text', text }] }
  const kept = [summary, ...messages.slice(cut)].map(messageTokens)
  const tokensAfter = kept.reduce((sum, tokens) => sum + tokens, definitionTokens(state.definition))
  const tokensBefore = state.contextTokens
  if (tokensAfter >= tokensBefore) return undefined
  const { turn } = state
  return { type: 'context_compacted', turn, summary, replacedMessages: cut, tokensBefore, tokensAfter }
}

/** Where the older messages end: never between a message and the results that it asked for. */
function cutOf(messages: readonly Message[], keepMessages: number): number {
  let cut = Math.max(0, messages.length - keepMessages)
  while (cut > 0 && messages[cut]?.role === 'tool') cut--
  return cut
}
