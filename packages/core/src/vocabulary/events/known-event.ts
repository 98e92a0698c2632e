import { UnknownEventError } from '../errors.ts'
import { eventTraits } from './event-traits.ts'
import type { EventType } from './event.ts'

/** Whether this release knows what an event of that type and version means. */
export function isKnown(type: string, v: number): type is EventType {
  return Object.hasOwn(eventTraits, type) && v <= eventTraits[type as EventType].v
}

/** Stops a fold at an event that this release does not know, with an `UnknownEventError`. */
export function requireKnown({
  runId,
  seq,
  type,
  v,
}: {
  readonly runId: string
  readonly seq: number
  readonly type: string
  readonly v: number
}): void {
  if (!isKnown(type, v)) throw new UnknownEventError(runId, seq, `${type} v${v}`)
}
