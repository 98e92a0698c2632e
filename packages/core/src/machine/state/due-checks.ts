import type { Outcome } from '../../vocabulary/model/content.ts'
import type { GuardedThing } from '../../vocabulary/events/event.ts'
import type { Call, CollectingState, ExecutingState, RunState } from './state.ts'
import { summaryOf } from './turn-calls.ts'

/** The guardrails of the active agent for one kind of thing, by name. */
export function guardrailsOn(state: RunState, on: GuardedThing): readonly string[] {
  return (state.definition.guardrails ?? []).flatMap((guardrail) =>
    guardrail.on === on ? [guardrail.name] : [],
  )
}

/** Guardrails that have to look at the input, by when: before the next model call, or beside it. */
export function dueInputChecks(state: RunState): {
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

/** Whether a reply may be the answer: it is whole, and asks for nothing. */
function isAnswer({ reply: { message }, calls }: CollectingState): boolean {
  const { partial, stopReason } = message
  return !partial && calls.length === 0 && ['end', 'tool_use', 'other'].includes(stopReason)
}

/** What has to look at the answer before it is one: the schema first, then the guardrails. */
export function dueAnswerCheck(state: CollectingState): 'schema' | 'guardrails' | undefined {
  if (state.cancel || state.blocked || !isAnswer(state)) return undefined
  const { fit, guarded } = state.reply
  if (state.definition.output && fit === undefined) return 'schema'
  // An answer that is to be written again does not count yet.
  if (fit?.valid === false && state.inputSinceReply) return undefined
  return guarded || guardrailsOn(state, 'output').length === 0 ? undefined : 'guardrails'
}

/** Outcomes whose content comes from a tool. */
const writtenByTools: ReadonlySet<Outcome> = new Set(['success', 'failed', 'timed_out', 'repeated'])

/** The calls whose results a tool has written. */
export function answeredCalls(state: ExecutingState): readonly Call[] {
  return state.calls.filter(({ result }) => result && writtenByTools.has(result.outcome))
}

/** Whether guardrails have to look at the results of a turn before they enter the history. */
export function dueResultsCheck(state: ExecutingState): boolean {
  if (state.cancel || state.resultsChecked || guardrailsOn(state, 'tool_output').length === 0) return false
  return summaryOf(state.calls).counts.settled === state.calls.length && answeredCalls(state).length > 0
}
