import type { RuntimeEvent } from '@tallystick/core'
import { envelopeOf } from '../record/envelope.ts'
import { upcasters, type Upcaster } from './upcasters.ts'

/**
 * Returns the event in its newest version: an older version goes through the upcasters of its type, one after the
 * other. An event of the newest version, of an unknown type or of an unknown version is returned unchanged. The
 * stored event never changes.
 *
 * Upcasters never change where, when and by which writer it was written: of the envelope only `v` changes.
 */
export function upcast(event: RuntimeEvent): RuntimeEvent {
  let current = event
  for (let step = stepFrom(current); step; step = stepFrom(current)) current = raised(current, step)
  return current
}

/** Whether events of a type may be in an older version. */
export function hasUpcaster({ type }: { readonly type: string }): boolean {
  return Object.hasOwn(upcasters, type)
}

function stepFrom({ type, v }: RuntimeEvent): Upcaster | undefined {
  const steps: unknown = Object.hasOwn(upcasters, type) ? upcasters[type] : undefined
  return (steps as { readonly [fromVersion: number]: Upcaster } | undefined)?.[v]
}

function raised(event: RuntimeEvent, step: Upcaster): RuntimeEvent {
  const envelope = envelopeOf(event)
  const body = Object.fromEntries(Object.entries(event).filter(([key]) => !Object.hasOwn(envelope, key)))
  return { ...step(body), ...envelope, v: event.v + 1 } as RuntimeEvent
}
