import type { GuardedThing } from '../../vocabulary/events/event.ts'
import { dueAnswerCheck, dueInputChecks, dueResultsCheck, guardrailsOn } from './due-checks.ts'
import type { Call, CollectingState, Compacting, ExecutingState, RunState } from './state.ts'

/** Something that has to be in flight. `key` names it for ever, so that it is started once and no more. */
export type Effect =
  | { readonly kind: 'model_call'; readonly key: string }
  | { readonly kind: 'check_calls'; readonly key: string }
  | { readonly kind: 'tool'; readonly key: string; readonly call: Call; readonly cancelReason?: string }
  | { readonly kind: 'reconcile'; readonly key: string; readonly call: Call }
  | {
      readonly kind: 'guardrails'
      readonly key: string
      readonly on: Exclude<GuardedThing, 'tool_input'>
      readonly guardrails: readonly string[]
    }
  | { readonly kind: 'check_output'; readonly key: string }
  | { readonly kind: 'summarize'; readonly key: string; readonly compacting: Compacting }

/** What must be in flight in this state, and nothing else. The shell starts what is missing and stops what is not named. */
export function requiredEffects(state: RunState): readonly Effect[] {
  if (state.phase === 'done') return []
  return [...inputCheckEffects(state), ...summaryEffect(state), ...phaseEffects(state)]
}

function phaseEffects(state: RunState): readonly Effect[] {
  const { turn } = state
  switch (state.phase) {
    case 'streaming':
      return state.attempt.failed
        ? []
        : [{ kind: 'model_call', key: `model ${turn} ${state.attempt.number}` }]
    case 'collecting':
      return state.calls.length === 0 ? answerCheckEffect(state) : callCheckEffect(state)
    case 'executing':
      return [
        ...state.calls.flatMap((call): readonly Effect[] => callEffects(state, call)),
        ...resultsCheckEffect(state),
      ]
    case 'idle':
    case 'injecting':
    case 'done':
      return []
  }
}

/** Guardrails that look at what the user said: those before the model call, and those beside it. */
function inputCheckEffects(state: RunState): readonly Effect[] {
  if (state.cancel || state.blocked) return []
  const { inputCheck } = state
  if (inputCheck === undefined) return []
  const due = dueInputChecks(state)
  return (['before', 'beside'] as const).flatMap((stage): readonly Effect[] => {
    const guardrails = due[stage]
    const key = `guardrails input ${stage} ${inputCheck.seq}`
    return guardrails.length === 0 ? [] : [{ kind: 'guardrails', key, on: 'input', guardrails }]
  })
}

function summaryEffect(state: RunState): readonly Effect[] {
  const { compacting, turn, cancel } = state
  if (compacting === undefined || compacting.interrupted || cancel) return []
  return [{ kind: 'summarize', key: `summarize ${turn}`, compacting }]
}

/** Calls are looked at when the guardrails have nothing against what the user said. */
function callCheckEffect(state: CollectingState): readonly Effect[] {
  if (state.blocked || state.inputCheck) return []
  return [{ kind: 'check_calls', key: `check ${state.turn}` }]
}

function answerCheckEffect(state: CollectingState): readonly Effect[] {
  const { turn } = state
  switch (dueAnswerCheck(state)) {
    case 'schema':
      // An answer that a guardrail has changed is another one.
      return [{ kind: 'check_output', key: `output ${turn}${state.reply.guarded ? ' guarded' : ''}` }]
    case 'guardrails': {
      const guardrails = guardrailsOn(state, 'output')
      return [{ kind: 'guardrails', key: `guardrails output ${turn}`, on: 'output', guardrails }]
    }
    case undefined:
      return []
  }
}

function resultsCheckEffect(state: ExecutingState): readonly Effect[] {
  if (!dueResultsCheck(state)) return []
  const guardrails = guardrailsOn(state, 'tool_output')
  return [{ kind: 'guardrails', key: `guardrails results ${state.turn}`, on: 'tool_output', guardrails }]
}

/** Why tools that run have to stop, if they have to. */
export function stopReason({ cancel, metLimit }: RunState): string | undefined {
  if (cancel) return cancel.reason ?? 'The run was cancelled.'
  return metLimit?.limit === 'durationMaxMs' && metLimit.policy !== 'ask'
    ? 'The time of the run is up.'
    : undefined
}

function callEffects(state: RunState, call: Call): readonly Effect[] {
  const { toolCallId, attempts } = call
  const reason = stopReason(state)
  const left = call.status === 'deferred' || (call.status === 'in_doubt' && state.cancel !== undefined)
  if (left && call.child !== undefined && reason !== undefined) {
    return [{ kind: 'tool', key: `tool ${toolCallId} ${attempts} stop`, call, cancelReason: reason }]
  }
  if (call.status === 'started') {
    const key = `tool ${toolCallId} ${attempts}`
    return [{ kind: 'tool', key, call, ...(reason !== undefined && { cancelReason: reason }) }]
  }
  if (call.status === 'in_doubt' && call.recovery === 'reconcile') {
    return [{ kind: 'reconcile', key: `reconcile ${toolCallId} ${state.epoch}`, call }]
  }
  return []
}
