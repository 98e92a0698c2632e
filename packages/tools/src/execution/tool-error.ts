import { TallystickError } from '@tallystick/core'

/** How a tool that throws a `ToolError` may say that its call ended. */
export type ToolErrorOutcome = 'failed' | 'timed_out' | 'interrupted'

/** What a `ToolError` may say beside its message. */
export interface ToolErrorOptions {
  readonly outcome?: ToolErrorOutcome
  /** Whether the same call may succeed later. Default: whether `retryAfterMs` is given. */
  readonly retryable?: boolean
  /** How many milliseconds to wait before the call is tried again, as a service asks with Retry-After. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/**
 * Thrown by a tool to tell the model, in these very words, why it did not do what was asked and what to try instead.
 * Any other error that a tool throws is reported with its name in front. Code `tool`.
 *
 * `outcome` is `failed` unless the tool keeps a time limit of its own and gave up at it (`timed_out`), or cannot say how
 * what it started has ended, such as a request whose connection broke (`interrupted`: the call is in doubt).
 *
 * A tool with `retry` is tried again after a `ToolError` only where that is `retryable`: its words are meant for the model.
 */
export class ToolError extends TallystickError {
  readonly outcome: ToolErrorOutcome
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  constructor(message: string, options: ToolErrorOptions = {}) {
    super('tool', message, options)
    this.outcome = options.outcome ?? 'failed'
    this.retryable = options.retryable ?? options.retryAfterMs !== undefined
    this.retryAfterMs = options.retryAfterMs
  }
}
