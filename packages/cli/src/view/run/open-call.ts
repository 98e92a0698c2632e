import type { RunState } from '@tallystick/core'
import type { Call } from '@tallystick/core/machine'
import type { ToolCallId } from '@tallystick/core/vocabulary'
import { openTurnCalls } from '@tallystick/core/machine'
import { childRunIdOf } from '@tallystick/core/vocabulary'

/** A call that has no result yet. */
export interface OpenCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly status: Call['status']
  /** What it waits for, in words. */
  readonly waits: string
}

/** The calls of a run that have no result yet. */
export function openCallsOf(state: RunState): readonly OpenCall[] {
  return openTurnCalls(state).flatMap((call) => {
    const { toolCallId, name, status } = call
    return status === 'settled' ? [] : [{ toolCallId, name, status, waits: waitText(state, call) }]
  })
}

function waitText({ runId }: RunState, { toolCallId, status, child, deferred }: Call): string {
  const childId = child === undefined ? undefined : childRunIdOf(runId, toolCallId)
  switch (status) {
    case 'awaiting_approval':
      return 'waits for an approval'
    case 'started':
      return childId === undefined ? 'was started' : `is the work of run ${childId}`
    case 'in_doubt':
      return 'was started, and no result was recorded'
    case 'to_retry':
      return 'failed, and is tried again'
    case 'deferred':
      return childId === undefined
        ? `continues outside as ${deferred?.externalId}`
        : `waits for run ${childId}`
    case 'requested':
    case 'to_settle':
    case 'to_ask':
    case 'ready':
    case 'settled':
      return 'was not started'
  }
}
