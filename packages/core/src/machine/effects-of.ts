import type { Call, RunState } from './state.ts'

/** Something that has to be in flight. `key` names it for ever, so that it is started once and no more. */
export type Effect =
  | { readonly kind: 'model_call'; readonly key: string }
  | { readonly kind: 'check_calls'; readonly key: string }
  | { readonly kind: 'tool'; readonly key: string; readonly call: Call; readonly cancelReason?: string }
  | { readonly kind: 'reconcile'; readonly key: string; readonly call: Call }

/** What must be in flight in this state, and nothing else. The shell starts what is missing and stops what is not named. */
export function effectsOf(state: RunState): readonly Effect[] {
  const { turn } = state
  switch (state.phase) {
    case 'streaming':
      return state.attempt.failed
        ? []
        : [{ kind: 'model_call', key: `model ${turn} ${state.attempt.number}` }]
    case 'collecting':
      return state.calls.length === 0 ? [] : [{ kind: 'check_calls', key: `check ${turn}` }]
    case 'executing':
      return state.calls.flatMap((call): readonly Effect[] => effectOfCall(state, call))
    case 'idle':
    case 'injecting':
    case 'done':
      return []
  }
}

/** Whether nothing is in flight, nothing is owed, and only a command can go on. */
export function isSuspended(state: RunState): boolean {
  if (state.phase === 'done' || state.phase === 'streaming') return false
  if (state.metLimit?.policy === 'ask') return effectsOf(state).length === 0
  if (state.phase !== 'executing') return false
  const statuses = state.calls.map(({ status }) => status)
  return (
    statuses.some((status) => status === 'awaiting_approval' || status === 'deferred') &&
    !statuses.some((status) => status === 'started' || status === 'in_doubt')
  )
}

/** Why tools that run have to stop, if they have to. */
export function stopReason({ cancel, metLimit }: RunState): string | undefined {
  if (cancel) return cancel.reason ?? 'The run was cancelled.'
  return metLimit?.limit === 'durationMaxMs' && metLimit.policy !== 'ask'
    ? 'The time of the run is up.'
    : undefined
}

function effectOfCall(state: RunState, call: Call): readonly Effect[] {
  const { toolCallId, attempts } = call
  if (call.status === 'started') {
    const reason = stopReason(state)
    const key = `tool ${toolCallId} ${attempts}`
    return [{ kind: 'tool', key, call, ...(reason !== undefined && { cancelReason: reason }) }]
  }
  if (call.status === 'in_doubt' && call.recovery === 'reconcile') {
    return [{ kind: 'reconcile', key: `reconcile ${toolCallId} ${state.epoch}`, call }]
  }
  return []
}
