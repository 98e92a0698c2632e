import type { LimitName } from './limits.ts'

/**
 * The most that a model call, a summary or a child run may use: recorded before it starts, settled by its usage. An
 * absent field is not bounded, which is legal only if the run has no limit of that kind.
 */
export interface Grant {
  readonly turns?: number
  readonly toolCalls?: number
  /** Input and output tokens together. Of a model call: the sum of the two. */
  readonly tokens?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  /** Web searches that the provider may run within a model call. Their cost is part of `costUsd`. */
  readonly webSearches?: number
  /** US dollars, at the price of the model that is called. */
  readonly costUsd?: number
  /** Milliseconds of work, waiting for a person not counted. */
  readonly durationMs?: number
}

/** The fields of a grant. */
export const grantFields = ['turns', 'toolCalls', 'tokens', 'inputTokens', 'outputTokens', 'costUsd'] as const
export type GrantField = (typeof grantFields)[number]

/** The limit that bounds each field of a grant. */
export const limitOfField: { readonly [F in GrantField]: LimitName } = {
  turns: 'maxTurns',
  toolCalls: 'maxToolCalls',
  tokens: 'maxTotalTokens',
  inputTokens: 'maxTotalInputTokens',
  outputTokens: 'maxTotalOutputTokens',
  costUsd: 'maxCostUsd',
}

/** How high a grant lets a limit be; `undefined` where it does not bound it. */
export function boundOfLimit(grant: Grant, limit: LimitName): number | undefined {
  if (limit === 'maxDurationMs') return grant.durationMs
  const field = grantFields.find((each) => limitOfField[each] === limit)
  return field && grant[field]
}

/** An amount of each field. */
export type Amounts = { readonly [F in GrantField]: number }
