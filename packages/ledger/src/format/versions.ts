import type { RuntimeEvent } from '@tallystick/core'
import type { EventType, JsonObject } from '@tallystick/core/vocabulary'
import { bodyOf } from './body.ts'

/** Brings what an event says, beside its envelope, from one version of its type to the next. Pure, and never changed. */
export type Upcaster = (body: JsonObject) => JsonObject

/** For each type, by the version that it leads away from: the one at 1 makes version 2 of version 1. */
export type Upcasters = { readonly [T in EventType]?: { readonly [fromVersion: number]: Upcaster } }

/**
 * A new version of an event type raises its `v` in core's `eventTraits` and adds one line here. Format 1 has none: every
 * type is at its first version.
 */
export const upcasters: Upcasters = {}

/** Whether events of a type may be in an older version. */
export function hasUpcaster({ type }: { readonly type: string }, known: Upcasters = upcasters): boolean {
  return Object.hasOwn(known, type)
}

/**
 * Returns the event in its newest version: an older one goes through the upcasters of its type, one after the other. Of the
 * envelope only `v` changes, and the stored event never does. Unknown types and versions are returned unchanged.
 */
export function upcast(event: RuntimeEvent, known: Upcasters = upcasters): RuntimeEvent {
  let current = event
  for (;;) {
    const steps = hasUpcaster(current, known) ? known[current.type] : undefined
    const step = steps?.[current.v]
    if (step === undefined) return current
    const { runId, seq, epoch, turn, toolCallId, type, at } = current
    const envelope = { runId, seq, epoch, turn, ...(toolCallId !== undefined && { toolCallId }), type, at }
    current = { ...step(bodyOf(current)), ...envelope, v: current.v + 1 } as unknown as RuntimeEvent
  }
}
