import { ConfigurationError } from '@tallystick/core'

const made = Symbol.for('@tallystick/tools/deferral')

/** That a call goes on outside. Made by `settledLater`. */
export interface Deferral {
  /** What names the call outside: a job's id, a ticket's number. It stands in the ledger. */
  readonly receipt: string
  /** Milliseconds from now after which the call counts as timed out; for ever where not given. */
  readonly deadlineMs?: number
}

/**
 * What a tool returns when its work goes on after it: the run parks, with no process alive for it, until
 * `runtime.settle(runId, toolCallId, result)`. Hand `context.runId` and `context.toolCallId` to whoever will settle it.
 */
export function settledLater({ receipt, deadlineMs }: Deferral): Deferral {
  if (typeof receipt !== 'string' || receipt === '') {
    throw new ConfigurationError(
      'settledLater() needs a receipt: what names the call outside, such as the id of a job.',
    )
  }
  if (deadlineMs !== undefined && !(Number.isFinite(deadlineMs) && deadlineMs > 0)) {
    throw new ConfigurationError(
      `settledLater() got deadlineMs ${deadlineMs}; pass milliseconds above 0, or leave it out.`,
    )
  }
  const deferral = { receipt, ...(deadlineMs !== undefined && { deadlineMs }) }
  Object.defineProperty(deferral, made, { value: true })
  return deferral
}

/** Whether a tool returned that its call goes on outside. */
export function isDeferral(value: unknown): value is Deferral {
  return typeof value === 'object' && value !== null && Reflect.get(value, made) === true
}
