/** The named maxima of a run. Absent means: no such limit. */
export interface Limits {
  /** Turns (model calls, retries not counted). With `onLimit: 'finalize'` the last of them writes the answer, without tools. */
  readonly turnsMax?: number
  /** Tool calls that are run, over the whole run. */
  readonly toolCallsMax?: number
  /** Tool calls that are run for one reply of the model. */
  readonly toolCallsPerTurnMax?: number
  /** Tool calls that are run, by the name of the tool. Calls past one get `limit_reached`; the run goes on. */
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
   * How often one call (tool and input) may give the same answer. From then on it is not run: the recorded answer is
   * served as `repeated`; and when that has happened as often, or a tool has failed with the same error twice as often
   * in a row, the limit is met.
   */
  readonly repeatsMax?: number
  /** Read tools that run at the same time. */
  readonly concurrencyMax?: number
  /** Milliseconds that a person has to decide about an approval; after that it counts as denied. */
  readonly approvalMaxMs?: number
  /** Milliseconds that a running tool has to end by itself after a cancel, before it is left behind. */
  readonly graceMs?: number
  /**
   * What happens at a limit: `finalize` (open calls get `limit_reached`, one last model call without tools writes the
   * answer), `stop` (at once), or `ask` (the run is suspended until the limit is raised). What the last call needs is
   * kept back from the calls before it, so that it stays within the limit too; it is left out where that cannot be.
   */
  readonly onLimit?: OnLimit
}

/** Limits as a caller gives them: one that is `undefined` is not given. */
export type GivenLimits = { readonly [Name in keyof Limits]: Limits[Name] | undefined }

/** What may follow from a limit that was met. */
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

/** Limits that protect where the agent names none. */
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

/** How failed model calls are tried again: after `baseMs * 2^n`, with jitter, or as long as the provider asks. */
export interface RetryPolicy {
  /** Attempts of one model call in all, the first included. */
  readonly attemptsMax: number
  readonly baseMs: number
  /** The longest wait of our own choosing. */
  readonly capMs: number
  /** The longest wait that a provider may ask for; beyond it the call counts as failed. */
  readonly retryAfterMaxMs: number
  /** The longest time from the first attempt of a turn to the start of its last, in milliseconds. */
  readonly totalMaxMs?: number
}

/** A policy as a caller gives it: what is `undefined` is as by default. */
export type GivenRetryPolicy = { readonly [Name in keyof RetryPolicy]?: RetryPolicy[Name] | undefined }

/** How failed model calls are tried again where the agent says nothing. */
export const defaultRetryPolicy: RetryPolicy = {
  attemptsMax: 4,
  baseMs: 500,
  capMs: 30_000,
  retryAfterMaxMs: 120_000,
  totalMaxMs: 600_000,
}
