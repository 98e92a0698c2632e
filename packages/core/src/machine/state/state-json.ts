import type { Message } from '../../vocabulary/model/content.ts'
import type { Json, JsonObject } from '../../vocabulary/values/json.ts'
import { callsOf, emptyCallLog, logCall, type LoggedCall } from '../messages/call-log.ts'
import { historyOf, messagesOf } from '../messages/history.ts'
import type { RunState } from './state.ts'

/**
 * The state of a run as JSON, from which `stateFromJson` makes the same state: what follows is folded onto it as onto
 * the other. Digests that were computed on the way are left out, and computed again when they are asked for. Shares its
 * parts with the state, so it is to be written down, and not to be changed.
 */
export function stateToJson(state: RunState): JsonObject {
  const { history, callLog } = state
  return {
    ...(state as unknown as JsonObject),
    history: messagesOf(history) as unknown as Json,
    callLog: callsOf(callLog) as unknown as Json,
  }
}

/** The state that `stateToJson` wrote down. What is no such state is taken as it comes: check before that it is one. */
export function stateFromJson(json: JsonObject): RunState {
  const calls = json['callLog'] as unknown as readonly LoggedCall[]
  return {
    ...json,
    history: historyOf(json['history'] as unknown as readonly Message[]),
    callLog: calls.reduce(logCall, emptyCallLog),
  } as unknown as RunState
}
