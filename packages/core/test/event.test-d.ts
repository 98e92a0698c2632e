// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.

import type { RuntimeEvent } from '@tallystick/core'
import type { EventType, Fact, FactOf, ToolCallId } from '@tallystick/core/vocabulary'
import { expectTypeOf } from 'vitest'
import type { CallEventType } from '../src/events/event.ts'

declare const toolCallId: ToolCallId

type CallEvent = Extract<RuntimeEvent, { readonly type: CallEventType }>

/** What a switch over events ends in: whatever reaches it was not handled. */
function unhandled(rest: never): never {
  throw new Error(String(rest))
}

/** Handles the call events but for `tool_result`. */
export function misses(event: CallEvent): string {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the gap is what is tested
  switch (event.type) {
    case 'tool_input_delta':
    case 'tool_request_ready':
    case 'approval_requested':
    case 'approval_added':
    case 'approval_decided':
    case 'approval_applied':
    case 'tool_started':
    case 'tool_progress':
      return event.toolCallId
    default:
      // @ts-expect-error an unhandled event type does not compile
      return unhandled(event)
  }
}

/** Handles every call event, so that nothing is left over. */
export function handles(event: CallEvent): string {
  switch (event.type) {
    case 'tool_input_delta':
    case 'tool_request_ready':
    case 'approval_requested':
    case 'approval_added':
    case 'approval_decided':
    case 'approval_applied':
    case 'tool_started':
    case 'tool_progress':
    case 'tool_deferred':
    case 'tool_attempt_failed':
    case 'tool_result':
    case 'background_ended':
      return event.toolCallId
    default:
      return unhandled(event)
  }
}

/** Reads the body only once the type is known. */
export function narrows(event: RuntimeEvent): string {
  // @ts-expect-error not every event has an outcome
  if (event.outcome === 'success') return 'guessed'
  return event.type === 'tool_result' ? event.outcome : event.type
}

const started = { turn: 1, name: 'get_weather', attempt: 1, idempotencyKey: 'key', effect: 'read' } as const

export const named: Fact = { type: 'tool_started', toolCallId, ...started }
// @ts-expect-error a fact about a call names its call
export const nameless: Fact = { type: 'tool_started', ...started }
// @ts-expect-error a call is not named by any string
export const misnamed: Fact = { type: 'tool_started', toolCallId: 'call_1', ...started }

type NamesItsCall = {
  [T in EventType]: FactOf<T> extends { readonly toolCallId: ToolCallId } ? T : never
}[EventType]

// The event types that must name their call are those that `callEventTypes` lists, and no other.
expectTypeOf<NamesItsCall>().toEqualTypeOf<CallEventType>()

/** Events are immutable. */
export function renumbers(event: RuntimeEvent): void {
  // @ts-expect-error seq is read-only
  event.seq = 2
}
