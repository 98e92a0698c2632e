import type { EventType, JsonObject } from '@tallystick/core/vocabulary'
import { withLimitNames } from './limit-names.ts'

/**
 * Brings what an event says, beside its envelope, from one version of its type to the next. Pure: the same body gives
 * the same body, for ever. It keeps the fields that it does not know.
 */
export type Upcaster = (body: JsonObject) => JsonObject

/** For each event type, by the version that it leads away from: the one at 1 makes version 2 of version 1. */
export type Upcasters = { readonly [T in EventType]?: { readonly [fromVersion: number]: Upcaster } }

/**
 * THE UPCASTERS. A new version of an event type raises its `v` in core's `eventTraits` and adds one line here, and
 * nothing that was released is ever changed or removed. Version 2 of the events below names every limit with `max` first.
 */
export const upcasters: Upcasters = {
  run_started: { 1: withLimitNames },
  run_resumed: { 1: withLimitNames },
  agent_handed_off: { 1: withLimitNames },
  limit_reached: { 1: withLimitNames },
  limit_raised: { 1: withLimitNames },
}
