import type { Outcome } from '../events/content.ts'
import type { GuardedThing } from '../events/event.ts'
import type {
  Call,
  CollectingState,
  Compacting,
  ExecutingState,
  InputCheck,
  RunState,
  StreamingState,
} from './state.ts'
import { removedInputReason, summarizeCalls } from './calls.ts'

/** The guardrails of the active agent for one kind of thing, by name. */
export function listGuardrails(state: RunState, on: GuardedThing): readonly string[] {
  return (state.definition.guardrails ?? []).flatMap((guardrail) =>
    guardrail.on === on ? [guardrail.name] : [],
  )
}

/** Guardrails that have to check the input: before the next model call, or in parallel with it. */
export function findDueInputChecks(state: RunState): {
  readonly before: readonly string[]
  readonly beside: readonly string[]
} {
  const beside = new Set(
    (state.definition.guardrails ?? []).flatMap((guardrail) => (guardrail.beside ? [guardrail.name] : [])),
  )
  const { guardrails = [] } = state.inputCheck ?? {}
  return {
    before: guardrails.filter((name) => !beside.has(name)),
    beside: guardrails.filter((name) => beside.has(name)),
  }
}

/** Returns whether a reply may be the answer: it is whole, and asks for nothing. */
function isAnswer({ reply: { message }, calls }: CollectingState): boolean {
  const { partial, stopReason } = message
  return !partial && calls.length === 0 && ['end', 'tool_use', 'other'].includes(stopReason)
}

/** The check due before the reply counts as an answer: the schema first, then the guardrails. */
export function findDueAnswerCheck(state: CollectingState): 'schema' | 'guardrails' | undefined {
  if (state.cancel || state.blocked || !isAnswer(state)) return undefined
  const { fit, guarded } = state.reply
  if (state.definition.output && fit === undefined) return 'schema'
  // An answer that is to be written again does not count yet.
  if (fit?.valid === false && state.inputSinceReply) return undefined
  return guarded || listGuardrails(state, 'output').length === 0 ? undefined : 'guardrails'
}

/** Outcomes whose content comes from a tool. */
const writtenByTools: ReadonlySet<Outcome> = new Set(['success', 'failed', 'timed_out', 'repeated'])

export function listAnsweredCalls(state: ExecutingState): readonly Call[] {
  return state.calls.filter(({ result }) => result && writtenByTools.has(result.outcome))
}

/** Returns whether guardrails have to look at the results of a turn before they enter the history. */
export function isResultsCheckDue(state: ExecutingState): boolean {
  if (state.cancel || state.resultsChecked || listGuardrails(state, 'tool_output').length === 0) return false
  return (
    summarizeCalls(state.calls).counts.settled === state.calls.length && listAnsweredCalls(state).length > 0
  )
}

/**
 * Something that has to be in flight. `key` names it for ever, so that it is started once and no more. It carries what
 * it needs, `state` included, as the state was when it became due.
 */
export type Effect =
  | { readonly kind: 'model_call'; readonly key: string; readonly state: StreamingState }
  | { readonly kind: 'check_calls'; readonly key: string; readonly state: CollectingState }
  | {
      readonly kind: 'tool'
      readonly key: string
      readonly state: RunState
      readonly call: Call
      readonly cancelReason?: string
    }
  | { readonly kind: 'reconcile'; readonly key: string; readonly state: ExecutingState; readonly call: Call }
  | ({ readonly kind: 'guardrails'; readonly key: string; readonly guardrails: readonly string[] } & (
      | { readonly on: 'input'; readonly state: RunState; readonly inputCheck: InputCheck }
      | { readonly on: 'output'; readonly state: CollectingState }
      | { readonly on: 'tool_output'; readonly state: ExecutingState }
    ))
  | { readonly kind: 'check_output'; readonly key: string; readonly state: CollectingState }
  | {
      readonly kind: 'summarize'
      readonly key: string
      readonly state: RunState
      readonly compacting: Compacting
    }

/** All effects that must be in flight in this state. The shell starts those missing and stops those not named. */
export function requiredEffects(state: RunState): readonly Effect[] {
  if (state.phase === 'done') return []
  const { compacting, turn, cancel } = state
  const effects = [...requireInputChecks(state)]
  if (compacting && !compacting.interrupted && !cancel)
    effects.push({ kind: 'summarize', key: `summarize ${turn}`, state, compacting })
  const { background } = state
  const beside = background?.flatMap((call) => toCallEffect(state, call) ?? []) ?? []
  return [...effects, ...beside, ...listPhaseEffects(state)]
}

/** Returns whether anything must be in flight in this state. */
export function requiresEffects(state: RunState): boolean {
  return (
    (state.phase === 'executing' && summarizeCalls(state.calls).counts.started > 0) ||
    requiredEffects(state).length > 0
  )
}

function listPhaseEffects(state: RunState): readonly Effect[] {
  const { turn } = state
  switch (state.phase) {
    case 'streaming':
      return state.attempt.failed
        ? []
        : [{ kind: 'model_call', key: `model ${turn} ${state.attempt.number}`, state }]
    case 'collecting':
      if (state.calls.length === 0) return requireAnswerCheck(state)
      // Calls are checked once the guardrails have passed the user's input.
      return state.blocked || state.inputCheck ? [] : [{ kind: 'check_calls', key: `check ${turn}`, state }]
    case 'executing': {
      const { started, deferred, in_doubt } = summarizeCalls(state.calls).counts
      const mayRequire = started + deferred + in_doubt > 0
      const calls = mayRequire ? state.calls.flatMap((call) => toCallEffect(state, call) ?? []) : []
      if (!isResultsCheckDue(state)) return calls
      const guardrails = listGuardrails(state, 'tool_output')
      const key = `guardrails results ${turn}`
      return [...calls, { kind: 'guardrails', key, on: 'tool_output', guardrails, state }]
    }
    case 'idle':
    case 'injecting':
    case 'done':
      return []
  }
}

/** Guardrails that check the user's input: those before the model call, and those in parallel with it. */
function requireInputChecks(state: RunState): readonly Effect[] {
  if (state.cancel || state.blocked) return []
  const { inputCheck } = state
  if (inputCheck === undefined) return []
  const due = findDueInputChecks(state)
  return (['before', 'beside'] as const).flatMap((stage): readonly Effect[] => {
    const guardrails = due[stage]
    const key = `guardrails input ${stage} ${inputCheck.seq}`
    return guardrails.length === 0
      ? []
      : [{ kind: 'guardrails', key, on: 'input', guardrails, state, inputCheck }]
  })
}

function requireAnswerCheck(state: CollectingState): readonly Effect[] {
  const { turn } = state
  const due = findDueAnswerCheck(state)
  if (due === undefined) return []
  // An answer that a guardrail has changed is another one.
  if (due === 'schema')
    return [{ kind: 'check_output', key: `output ${turn}${state.reply.guarded ? ' guarded' : ''}`, state }]
  const guardrails = listGuardrails(state, 'output')
  return [{ kind: 'guardrails', key: `guardrails output ${turn}`, on: 'output', guardrails, state }]
}

/** Why tools that run have to stop, if they have to. */
export function findStopReason({ cancel, metLimit }: RunState): string | undefined {
  if (cancel) return cancel.reason ?? 'The run was cancelled.'
  return metLimit?.limit === 'maxDurationMs' && metLimit.policy !== 'ask'
    ? 'The time of the run is up.'
    : undefined
}

/** The effects that must be in flight for one call. */
function toCallEffect(state: RunState, call: Call): Effect | undefined {
  const { toolCallId, attempts, status } = call
  if (status === 'settled' || status === 'ready') return undefined
  const cannotStart = status === 'in_doubt' && call.inputRemoved !== undefined
  const reason = findStopReason(state) ?? (cannotStart ? removedInputReason : undefined)
  const left = status === 'deferred' || cannotStart || (status === 'in_doubt' && state.cancel !== undefined)
  if (left && call.child !== undefined && reason !== undefined) {
    return { kind: 'tool', key: `tool ${toolCallId} ${attempts} stop`, state, call, cancelReason: reason }
  }
  if (status === 'started') {
    const key = `tool ${toolCallId} ${attempts}`
    return { kind: 'tool', key, state, call, ...(reason !== undefined && { cancelReason: reason }) }
  }
  if (state.phase === 'executing' && status === 'in_doubt' && call.recovery === 'reconcile' && !cannotStart) {
    return { kind: 'reconcile', key: `reconcile ${toolCallId} ${state.epoch}`, state, call }
  }
  return undefined
}
