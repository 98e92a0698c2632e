import { LedgerDamagedError, UnknownEventError } from '../errors.ts'
import { callEnvelopeSchema, envelopeSchema, eventBodies } from './event-schema.ts'
import { isObjectOf, type QuickCheck, type Shape } from '../values/quick-check.ts'
import { faultOf, type Schema } from '../values/schema.ts'
import { callEventTypes, type EventType, type RuntimeEvent } from './event.ts'
import { isKnown } from './known-event.ts'

const callTypes: ReadonlySet<string> = new Set(callEventTypes)

/**
 * Reads an event from outside: an import, or a store of other people's. Answers the value that it was given, unknown
 * fields included. Throws an `UnknownEventError` for a type, or a version of a type, that this release does not know,
 * and a `LedgerDamagedError` that names the place for anything else that is no event.
 */
export function parseEvent(value: unknown): RuntimeEvent {
  requireValid(envelopeSchema, value, 'An event')
  const { type, v, seq, runId } = value as { type?: unknown; v: number; seq: number; runId: string }
  const subject = `Event ${seq} of run ${runId}`
  if (typeof type !== 'string') throw damaged(subject, 'type', 'expected string')
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
  if (callTypes.has(type)) requireValid(callEnvelopeSchema, value, subject)
  requireValid(eventBodies[type], value, subject)
  return value as RuntimeEvent
}

/**
 * The first field of an event that does not have the shape of its type; `undefined` where every field fits, and for
 * types and versions that this release does not know. Of an event whose content was taken away only what is left is
 * checked: its envelope. The value of the field is not shown.
 */
export function shapeFaultOf(
  event: RuntimeEvent,
): { readonly path: string; readonly what: string } | undefined {
  const { type, v, removed } = event
  if (removed === undefined && isKnown(type, v) && wholeCheckOf(type)(event)) return undefined
  const envelopeFault = faultOf(envelopeSchema, event)
  if (envelopeFault || !isKnown(type, v)) return envelopeFault
  // A call that is named was checked with the envelope.
  const isNameless = callTypes.has(type) && event.toolCallId === undefined
  if (isNameless) return faultOf(callEnvelopeSchema, event)
  return removed === undefined ? faultOf(eventBodies[type], event) : undefined
}

const wholeChecks = new Map<EventType, QuickCheck>()

/** The check of an event of a type with all its fields, in one pass over them. */
function wholeCheckOf(type: EventType): QuickCheck {
  const known = wholeChecks.get(type)
  if (known) return known
  const schemas = [envelopeSchema, ...(callTypes.has(type) ? [callEnvelopeSchema] : []), eventBodies[type]]
  const check = isObjectOf(Object.assign({}, ...schemas.map(({ fields }) => fields)) as Shape)
  wholeChecks.set(type, check)
  return check
}

function requireValid(schema: Schema<unknown>, value: unknown, subject: string): void {
  const fault = faultOf(schema, value)
  if (fault) throw damaged(subject, fault.path, fault.what)
}

function damaged(subject: string, path: string, fault: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `${subject} is damaged at ${path}: ${fault}. What follows from a damaged event cannot be trusted, so it was not ` +
      `read. Run verify on the ledger that it comes from, or export it there again.`,
  )
}
