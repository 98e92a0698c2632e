/**
 * Tokens of one model call, or of many. `inputTokens` holds every prompt token, cached ones included;
 * `cacheReadTokens` and `cacheWriteTokens` are parts of it, `reasoningTokens` is a part of `outputTokens`.
 * Absent means that the provider did not say, which is not zero.
 */
export interface Usage {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly cacheReadTokens?: number
  readonly cacheWriteTokens?: number
  readonly reasoningTokens?: number
}

/** The fields of a usage. */
export const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'reasoningTokens',
] as const

/** The sum of two usages; a field that neither knows stays unknown. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: { -readonly [field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [left, right] = [a[field], b[field]]
    if (left !== undefined || right !== undefined) sum[field] = (left ?? 0) + (right ?? 0)
  }
  return sum
}

/** A later report of the same call over an earlier one: numbers are totals, so each known field replaces. */
export function replaceUsage(earlier: Usage, later: Usage): Usage {
  return { ...earlier, ...later }
}
