import { TallystickError } from '@tallystick/core'

/** How a tool that throws a `ToolError` may say that its call ended. */
export type ToolErrorOutcome = 'failed' | 'timed_out' | 'interrupted'

/**
 * Thrown by a tool to tell the model, in these very words, why it did not do what was asked and what to try instead.
 * Any other error that a tool throws is reported with its name in front. Code `tool`.
 *
 * `outcome` is `failed` unless the tool keeps a time limit of its own and gave up at it (`timed_out`), or cannot say how
 * what it started has ended, such as a request whose connection broke (`interrupted`: the call is in doubt).
 */
export class ToolError extends TallystickError {
  readonly outcome: ToolErrorOutcome
  constructor(message: string, options?: { readonly outcome?: ToolErrorOutcome; readonly cause?: unknown }) {
    super('tool', message, options)
    this.outcome = options?.outcome ?? 'failed'
  }
}
