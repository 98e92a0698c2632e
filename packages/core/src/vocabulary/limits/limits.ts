/** The limits of a run. Absent means: no such limit. */
export interface Limits {
  /** Turns (model calls, retries not counted). With `onLimit: 'finalize'` the last of them writes the answer, without tools. */
  readonly turnsMax?: number
  /** Tool calls that are run, over the whole run. */
  readonly toolCallsMax?: number
  /** Tool calls that are run for one reply of the model. */
  readonly toolCallsPerTurnMax?: number
  /** Tool calls that are run, by the name of the tool. Calls past one get `limit_reached`; the run continues. */
  readonly callsMaxByTool?: { readonly [tool: string]: number }
  /** Input and output tokens together. A call is not made when too few are left for it; its output is held to them. */
  readonly tokensMax?: number
  readonly inputTokensMax?: number
  readonly outputTokensMax?: number
  /** US dollars, at the price of the model that is called. Needs a price for each of the agent's models. */
  readonly costMaxUsd?: number
  /**
   * Milliseconds from `run_started`, waiting for a person not counted. With `onLimit: 'finalize'` the last quarter of
   * them, 30 seconds at most, is kept for the call that writes the answer.
   */
  readonly durationMaxMs?: number
  /**
   * How often one call (tool and input) may give the same answer. After that it is not run: the recorded answer is
   * served as `repeated`. The limit is met when that has happened as often again, or when a tool has failed with the
   * same error twice as often in a row.
   */
  readonly repeatsMax?: number
  /** Read tools that run at the same time. */
  readonly concurrencyMax?: number
  /** Milliseconds that a person has to decide about an approval; after that it counts as denied. */
  readonly approvalMaxMs?: number
  /** Milliseconds that a running tool has to end after a cancel, before the runtime gives it up. */
  readonly graceMs?: number
  /**
   * What happens at a limit: `finalize` (open calls get `limit_reached`, one last model call without tools writes the
   * answer), `stop` (at once), or `ask` (the run is suspended until the limit is raised). The calls before the last
   * one leave enough of the limit for it; if that is impossible, there is no last call.
   */
  readonly onLimit?: OnLimit
}

/** Limits as a caller gives them: one that is `undefined` is not given. */
export type GivenLimits = { readonly [Name in keyof Limits]: Limits[Name] | undefined }

/** What may follow when a limit is met. */
export const onLimits = ['finalize', 'stop', 'ask'] as const
export type OnLimit = (typeof onLimits)[number]

/** The limits that can be met, raised, and named in a ledger. */
export const limitNames = [
  'turnsMax',
  'toolCallsMax',
  'toolCallsPerTurnMax',
  'tokensMax',
  'inputTokensMax',
  'outputTokensMax',
  'costMaxUsd',
  'durationMaxMs',
  'repeatsMax',
] as const
export type LimitName = (typeof limitNames)[number]

/** Limits that apply if the agent names none. */
export const defaultLimits: Limits & {
  readonly turnsMax: number
  readonly repeatsMax: number
  readonly concurrencyMax: number
  readonly graceMs: number
} = {
  turnsMax: 20,
  repeatsMax: 3,
  concurrencyMax: 8,
  graceMs: 2_000,
  onLimit: 'finalize',
}

/**
 * How failed model calls are retried: after `baseMs * 2^n`, with jitter, or after the time that the provider asks
 * for.
 */
export interface RetryPolicy {
  /** Attempts of one model call in all, the first included. */
  readonly attemptsMax: number
  readonly baseMs: number
  /** The longest wait that the runtime chooses. */
  readonly capMs: number
  /** The longest wait that a provider may ask for; beyond it the call counts as failed. */
  readonly retryAfterMaxMs: number
  /** The longest time from the first attempt of a turn to the start of its last, in milliseconds. */
  readonly totalMaxMs?: number
}

/** A policy as a caller gives it: an `undefined` field has its default. */
export type GivenRetryPolicy = { readonly [Name in keyof RetryPolicy]?: RetryPolicy[Name] | undefined }

/** The retry policy if the agent gives none. */
export const defaultRetryPolicy: RetryPolicy = {
  attemptsMax: 4,
  baseMs: 500,
  capMs: 30_000,
  retryAfterMaxMs: 120_000,
  totalMaxMs: 600_000,
}
