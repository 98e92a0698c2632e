import type { Usage } from '@tallystick/core'

/** What a response used, in tokens. */
export interface FacadeUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

/** What a run has used since a response before this one ended. */
export function usageSince(now: Usage, before: Usage): FacadeUsage {
  const since = (field: keyof Usage): number => (now[field] ?? 0) - (before[field] ?? 0)
  return {
    input: since('inputTokens'),
    cached: since('cacheReadTokens'),
    output: since('outputTokens'),
    reasoning: since('reasoningTokens'),
  }
}
