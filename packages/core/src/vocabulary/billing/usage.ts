/**
 * The billed usage of one model call, or of several. `inputTokens` counts every prompt token, cached ones included;
 * `cacheReadTokens` and `cacheWriteTokens` are parts of it, `reasoningTokens` is a part of `outputTokens`. An absent
 * field was not reported, which is not zero. If a vendor reads several prompts for one call, all of them are counted,
 * though only the last shows how long the conversation is.
 */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  /** The part of `cacheWriteTokens` that the vendor keeps longer than usual, at a higher price: one hour at Anthropic. */
  readonly cacheWriteLongTokens?: number
  readonly reasoningTokens?: number
  /** Searches that the vendor ran on the web inside the call, and bills one by one. */
  readonly webSearches?: number
}

/** The fields of a usage. */
export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWriteLongTokens',
  'reasoningTokens',
  'webSearches',
] as const
export type UsageField = (typeof usageFields)[number]

/** The most tokens that a report is believed: more than any model reads or writes in one call. */
const MAX_TOKENS_BELIEVED = 1_000_000_000

/** Whether a reported number can be a count of tokens. */
export function isTokenCount(amount: unknown): amount is number {
  return Number.isInteger(amount) && (amount as number) >= 0 && (amount as number) <= MAX_TOKENS_BELIEVED
}

/** The numbers of a report that are counts of tokens; the others are left out. */
export function tokenCounts(report: Usage): Usage {
  const counts: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const amount = report[field]
    if (isTokenCount(amount)) counts[field] = amount
  }
  return counts
}

/** The sum of two usages; a field that neither knows stays unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [left, right] = [a[field], b[field]]
    if (left !== undefined || right !== undefined) sum[field] = (left ?? 0) + (right ?? 0)
  }
  return sum
}

/** Two reports of one call, each field by the larger: numbers are totals, so a smaller one takes nothing back. */
export function largerUsage(a: Usage, b: Usage): Usage {
  const larger: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [left, right] = [a[field], b[field]]
    if (left !== undefined || right !== undefined) larger[field] = Math.max(left ?? 0, right ?? 0)
  }
  return larger
}
