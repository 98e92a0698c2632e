import { omitUndefined, option, requireOptions } from '@tallystick/core/kit'

const made = Symbol.for('@tallystick/tools/deferral')

/** Says that an outside system carries out a call. Made by `settledLater`. */
export interface Deferral {
  /** The name of the call outside: a job's id, a ticket's number. The ledger holds it. */
  readonly externalId: string
  /** Milliseconds from now after which the call ends as timed out. Default: never. */
  readonly deadlineMs?: number | undefined
}

/** A deferral as `settledLater` made it. */
export interface KeptDeferral extends Deferral {
  readonly deadlineMs?: number
}

const { fields, maybe, valueThat } = option
const deferralFields = fields<Deferral>(
  {
    externalId: valueThat(
      'what names the call outside, as text that is not empty, such as the id of a job',
      (value) => typeof value === 'string' && value !== '',
    ),
    deadlineMs: maybe(
      valueThat(
        'a number of milliseconds above 0',
        (value) => Number.isFinite(value) && (value as number) > 0,
      ),
    ),
  },
  { id: 'externalId', jobId: 'externalId', receipt: 'externalId', timeoutMs: 'deadlineMs' },
)

/**
 * Returns the result of a tool whose work continues after it returns: the run is suspended, with no process alive for
 * it, until `runtime.settle(runId, toolCallId, result)`. Pass `context.runId` and `context.toolCallId` to the code that
 * will settle it.
 */
export function settledLater(options: Deferral): Deferral {
  requireOptions('settledLater', deferralFields, options)
  const { externalId, deadlineMs } = options
  const deferral = { externalId, ...omitUndefined({ deadlineMs }) }
  Object.defineProperty(deferral, made, { value: true })
  return deferral
}

/** Whether a tool returned a deferral. */
export function isDeferral(value: unknown): value is KeptDeferral {
  return typeof value === 'object' && value !== null && Reflect.get(value, made) === true
}
