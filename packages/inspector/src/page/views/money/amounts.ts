import { formatCost, formatDuration } from '../../ui/text.tsx'
import type { Budget, Spender } from '../../worker/money.ts'

const fieldWords: Readonly<Record<Budget['field'], string>> = {
  costUsd: 'Cost',
  tokens: 'Tokens',
  inputTokens: 'Input tokens',
  outputTokens: 'Output tokens',
  turns: 'Turns',
  toolCalls: 'Tool calls',
}

export function nameField(field: Budget['field']): string {
  return fieldWords[field]
}

/** An amount of a budget: dollars, or a number. */
export function formatAmount(field: Budget['field'], amount: number): string {
  return field === 'costUsd' ? formatCost(amount) : Math.round(amount).toLocaleString('en')
}

/** A count of tokens, short: `1.4 M`, `22 k`, `640`. */
export function formatTokens(tokens: number): string {
  if (tokens >= 999_500) return `${(tokens / 1_000_000).toFixed(1)} M`
  return tokens >= 10_000 ? `${Math.round(tokens / 1_000)} k` : tokens.toLocaleString('en')
}

/** How much of the input came from the provider's cache, from 0 to 1; `undefined` if that is not known. */
export function computeCachedShare({ usage }: Pick<Spender, 'usage'>): number | undefined {
  const { inputTokens, cacheReadTokens } = usage
  if (cacheReadTokens === undefined || inputTokens === undefined || inputTokens === 0) return undefined
  return Math.min(1, cacheReadTokens / inputTokens)
}

/** A grant in words: `$0.10, 4,000 tokens, 3 turns`. */
export function describeGrant(grant: {
  readonly costUsd?: number
  readonly tokens?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly turns?: number
  readonly durationMs?: number
}): string {
  const { costUsd, inputTokens, outputTokens, turns, durationMs } = grant
  const both =
    inputTokens === undefined || outputTokens === undefined ? undefined : inputTokens + outputTokens
  const tokens = grant.tokens ?? both
  const parts = [
    costUsd !== undefined && formatCost(costUsd),
    tokens !== undefined && `${formatTokens(tokens)} tokens`,
    turns !== undefined && turns > 0 && `${turns} ${turns === 1 ? 'turn' : 'turns'}`,
    durationMs !== undefined && formatDuration(durationMs),
  ].filter(Boolean)
  return parts.length > 0 ? parts.join(', ') : 'no bound'
}
