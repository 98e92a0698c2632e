import {
  amount,
  anyOf,
  exactly,
  objectOf,
  maybe,
  numberFrom,
  recordOf,
  type Schema,
  wordOf,
} from '../values/schema.ts'

/** The limits of a run. Absent means: no such limit. */
export interface Limits {
  /** Turns: model calls, not counting retries. With `onLimit: 'finalize'` the last one writes the answer, without tools. */
  readonly maxTurns?: number
  /** Tool calls started in the whole run. */
  readonly maxToolCalls?: number
  /** Tool calls started for one reply of the model. */
  readonly maxToolCallsPerTurn?: number
  /** Tool calls started, by tool name. Further calls get `limit_reached`; the run continues. */
  readonly maxCallsByTool?: { readonly [tool: string]: number }
  /** Input and output tokens together. A model call needs enough of them left, and its output is bounded by them. */
  readonly maxTotalTokens?: number
  readonly maxTotalInputTokens?: number
  readonly maxTotalOutputTokens?: number
  /** US dollars, at the price of the model that is called. Needs a price for each of the agent's models. */
  readonly maxCostUsd?: number
  /**
   * Milliseconds from `run_started`, not counting waits for a person. With `onLimit: 'finalize'` the last quarter of
   * them, at most 30 seconds, is kept for the call that writes the answer.
   */
  readonly maxDurationMs?: number
  /**
   * How often one read (tool and input) may give the same answer while nothing else happens. After that it is not run:
   * the recorded answer is served as `repeated`. The limit is met when that has happened as often again, or when a tool
   * has failed with the same error so often in a row (twice at least). A write, new input, an approval, an answer that was not
   * known and the like make all counts begin again; a tool that says `repeats` is not counted. Default 6.
   */
  readonly maxRepeats?: number
  /** Read tools that run at the same time. */
  readonly maxConcurrency?: number
  /** Milliseconds that a person has to decide an approval; after that it counts as denied. */
  readonly maxApprovalMs?: number
  /**
   * Milliseconds that a running tool has to end after a cancel before the runtime gives it up. A child run has a shorter
   * time, and then up to 10 seconds to record its end, so that its usage is counted.
   */
  readonly graceMs?: number
  /**
   * The reaction to a limit: `finalize` (open calls get `limit_reached`, one last model call without tools writes the
   * answer), `stop` (at once), or `ask` (the run is suspended until the limit is raised). The calls before the last
   * one leave enough of the limit for it; if that is impossible, there is no last call.
   */
  readonly onLimit?: OnLimit
}

/** Limits as a caller gives them: one that is `undefined` is not given. */
export type GivenLimits = { readonly [Name in keyof Limits]: Limits[Name] | undefined }

/** The possible consequences of a limit. */
export const onLimits = ['finalize', 'stop', 'ask'] as const
export type OnLimit = (typeof onLimits)[number]

/** The limits that can be met, raised, and named in a ledger. */
export const limitNames = [
  'maxTurns',
  'maxToolCalls',
  'maxToolCallsPerTurn',
  'maxTotalTokens',
  'maxTotalInputTokens',
  'maxTotalOutputTokens',
  'maxCostUsd',
  'maxDurationMs',
  'maxRepeats',
] as const
export type LimitName = (typeof limitNames)[number]

/** The finish reason that names each limit. */
export const limitReasons = {
  maxTurns: 'turn_limit',
  maxToolCalls: 'tool_call_limit',
  maxToolCallsPerTurn: 'tool_call_limit',
  maxTotalTokens: 'token_limit',
  maxTotalInputTokens: 'token_limit',
  maxTotalOutputTokens: 'token_limit',
  maxCostUsd: 'cost_limit',
  maxDurationMs: 'time_limit',
  maxRepeats: 'repeat_limit',
} as const

/** Returns the same value for every limit that can be met. */
export function forEveryLimit<T>(value: T): { readonly [L in LimitName]: T } {
  return Object.fromEntries(limitNames.map((name) => [name, value])) as { [L in LimitName]: T }
}

/** The smallest `maxResultChars`: with fewer characters a model can do nothing. */
export const leastResultChars = 100

/** Limits that apply if the agent names none. */
export const defaultLimits: Limits & {
  readonly maxTurns: number
  readonly maxRepeats: number
  readonly maxConcurrency: number
  readonly graceMs: number
} = {
  maxTurns: 20,
  maxRepeats: 6,
  maxConcurrency: 8,
  graceMs: 2_000,
  onLimit: 'finalize',
}

/**
 * How failed calls of a model, or of a tool, are retried: after `baseMs * 2^n`, with jitter, or after the time that the
 * provider or the tool asks for.
 */
export interface RetryPolicy {
  /** Attempts of one call in all, the first included. */
  readonly maxAttempts: number
  readonly baseMs: number
  /** The longest wait that the runtime chooses. */
  readonly capMs: number
  /** The longest wait that a provider or a tool may ask for; beyond it the call counts as failed. */
  readonly maxRetryAfterMs: number
  /** The longest time from the first attempt of a turn, or of a tool call, to the start of its last, in milliseconds. */
  readonly maxTotalMs?: number
}

/** A policy as a caller gives it: an `undefined` field has its default. */
export type GivenRetryPolicy = { readonly [Name in keyof RetryPolicy]?: RetryPolicy[Name] | undefined }

/** The retry policy if the agent gives none. */
export const defaultRetryPolicy: RetryPolicy = {
  maxAttempts: 4,
  baseMs: 500,
  capMs: 30_000,
  maxRetryAfterMs: 120_000,
  maxTotalMs: 600_000,
}

/**
 * Declares that a tool is meant to be called repeatedly, so that equal answers in a row are not a sign of a stuck model: `allowed`
 * without a wait; with `minIntervalMs`, an equal call starts at the earliest that many milliseconds after the last answer.
 */
export type Repeats = 'allowed' | { readonly minIntervalMs: number }

/** What a run does with work in the background that has not ended when it would end: it waits for it, or leaves it. */
export const backgrounds = ['wait', 'leave'] as const
export type Background = (typeof backgrounds)[number]

/** Checks how a tool is meant to be asked again. */
export const repeats: Schema<Repeats> = anyOf(
  "'allowed', or { minIntervalMs: a number }",
  exactly('allowed'),
  objectOf<{ readonly minIntervalMs: number }>({ minIntervalMs: amount }),
)

export const limits: Schema<Limits> = objectOf({
  ...forEveryLimit(maybe(amount)),
  maxCallsByTool: maybe(recordOf(amount)),
  maxConcurrency: maybe(amount),
  graceMs: maybe(amount),
  maxApprovalMs: maybe(amount),
  onLimit: maybe(wordOf(onLimits)),
})

/** Checks how failed calls are tried again. */
export const retry: Schema<RetryPolicy> = objectOf({
  maxAttempts: amount,
  baseMs: amount,
  capMs: amount,
  maxRetryAfterMs: amount,
  maxTotalMs: maybe(amount),
})

/** An amount that was used or granted. */
const spent = numberFrom(0)

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
  /** Milliseconds of work, not counting waits for a person. */
  readonly durationMs?: number
}

export const grant: Schema<Grant> = objectOf({
  turns: maybe(spent),
  toolCalls: maybe(spent),
  tokens: maybe(spent),
  inputTokens: maybe(spent),
  outputTokens: maybe(spent),
  costUsd: maybe(spent),
  webSearches: maybe(spent),
  durationMs: maybe(spent),
})

export const grantFields = ['turns', 'toolCalls', 'tokens', 'inputTokens', 'outputTokens', 'costUsd'] as const
export type GrantField = (typeof grantFields)[number]

/** The limit that bounds each field of a grant. */
export const limitOfField: {
  readonly turns: 'maxTurns'
  readonly toolCalls: 'maxToolCalls'
  readonly tokens: 'maxTotalTokens'
  readonly inputTokens: 'maxTotalInputTokens'
  readonly outputTokens: 'maxTotalOutputTokens'
  readonly costUsd: 'maxCostUsd'
} = {
  turns: 'maxTurns',
  toolCalls: 'maxToolCalls',
  tokens: 'maxTotalTokens',
  inputTokens: 'maxTotalInputTokens',
  outputTokens: 'maxTotalOutputTokens',
  costUsd: 'maxCostUsd',
}

/** How high a grant lets a limit be; `undefined` if it does not bound it. */
export function findBound(grant: Grant, limit: LimitName): number | undefined {
  if (limit === 'maxDurationMs') return grant.durationMs
  const field = grantFields.find((each) => limitOfField[each] === limit)
  return field && grant[field]
}

export type Amounts = { readonly [F in GrantField]: number }
