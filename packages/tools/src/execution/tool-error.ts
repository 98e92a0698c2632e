import { TallystickError } from '@tallystick/core'

/** The outcomes that a `ToolError` may have. */
export type ToolErrorOutcome = 'failed' | 'timed_out' | 'interrupted'

/** Options of a `ToolError`. */
export interface ToolErrorOptions {
  readonly outcome?: ToolErrorOutcome
  /** Whether the same call may succeed later. Default: whether `retryAfterMs` is given. */
  readonly retryable?: boolean
  /** How many milliseconds to wait before the call is tried again, as a service asks with Retry-After. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/**
 * Thrown by a tool to tell the model, in exactly these words, why it failed and what to try instead. Of any other error
 * the model also reads the name. Code `tool`. `outcome` is `failed` by default; `timed_out` if the tool gave up at a
 * time limit of its own; `interrupted` if the tool cannot know how its effect ended, such as a request whose connection
 * broke: the call is in doubt. A tool with `retry` is tried again after a `ToolError` only if that is `retryable`.
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
