import { type ModelRef, sameModel } from '../events/content.ts'
import type { FactOf, ShownChange } from '../events/event.ts'
import type { FailureClass } from '../values/errors.ts'
import { omitUndefined } from '../values/json.ts'
import type { ToolChoice } from '../events/model-request.ts'
import { type LimitFinding, getOnLimit } from './budget.ts'
import { grantModelCall, type PlannedCall } from './limit-checks.ts'
import { digestAdditions, listModels, namesModel, requestDigest, getSettings } from './request.ts'
import type { RunState, StreamingState } from './state.ts'
import { getCurrentModel, getMaxWebSearches, getPrice } from './calls.ts'
import { filterOfferedTools, estimateRequestTokens, estimateChangeTokens } from './tokens.ts'
import { messagesShown, showsOtherWords } from './history.ts'

/** A planned model call. */
export interface CallPlanning {
  /** The one call past a limit, which writes the answer. */
  readonly finalizing?: boolean
  /** The turn's changes, with the tools of a source if they have changed. */
  readonly change?: ShownChange
  /** Where not the one that the run uses now. */
  readonly model?: ModelRef
  /** Where not the one that the run was given. */
  readonly toolChoice?: ToolChoice
}

type CallFact = FactOf<'model_call_started'>

/**
 * The fact that starts a model call, with what the call is granted: the first attempt of a turn, or the next attempt of
 * the same. Or the limit that leaves too little for it.
 */
export function nextModelCall(state: RunState, now: number, planning: CallPlanning): CallFact | LimitFinding {
  const again = state.phase === 'streaming'
  const { finalizing = false, change: shown = {}, model = getCurrentModel(state) } = planning
  const toolChoice = planToolChoice(state, planning)
  const grant = grantModelCall(state, now, {
    price: getPrice(state, model),
    maxWebSearches: getMaxWebSearches(state, { model, toolChoice }),
    inputTokens: estimateInputTokens(state, shown),
    startsTurn: !again,
    maxOutputTokens: planOutput(state, shown),
    finalizing,
    keepsFinalizing: leavesFinalizingCall(state, toolChoice, shown),
  })
  if ('limit' in grant) return grant
  const options = {
    model,
    toolChoice,
    ...omitUndefined({
      maxOutputTokens: grant.outputTokens,
      change: Object.keys(shown).length > 0 ? shown : undefined,
    }),
  }
  return {
    type: 'model_call_started',
    turn: state.turn + (again ? 0 : 1),
    attempt: again ? state.attempt.number + 1 : 1,
    requestDigest: requestDigest(state, options),
    ...options,
    finalizing,
    grant,
    ...omitUndefined({ additions: digestAdditions(state.definition, model) }),
  }
}

/** The most output tokens of a reply, by the turn, the run or its agent. */
export function planOutput(state: RunState, change: ShownChange = {}): number | undefined {
  const { maxOutputTokens = getSettings(state, change)?.maxOutputTokens } = change
  return maxOutputTokens ?? state.definition.maxOutputTokens
}

/** Which tools a call may ask for: the finalizing call for none. */
export function planToolChoice(
  { toolChoice: given, turn }: RunState,
  { finalizing, toolChoice }: Pick<CallPlanning, 'finalizing' | 'toolChoice'>,
): ToolChoice {
  if (finalizing) return { type: 'none' }
  if (toolChoice) return toolChoice
  // That a tool is called is asked of the first turn of a run alone: asked of each, the run would never end.
  return given?.type === 'none' || (given && turn === 0) ? given : { type: 'auto' }
}

/** About how many input tokens the request has: what a turn shows instead of the history is counted anew. */
function estimateInputTokens(state: RunState, change: ShownChange): number {
  const { instructions, tools, sourced } = change
  if (!showsOtherWords(change)) return Math.max(0, state.contextTokens + estimateChangeTokens(state, sourced))
  const shown = {
    ...state.definition,
    ...omitUndefined({ instructions }),
    tools: filterOfferedTools(state, tools, sourced),
  }
  const tokens = estimateRequestTokens(shown, messagesShown(state.history, change))
  return Math.ceil(tokens * state.estimateFactor)
}

/** A call that may ask for tools is followed by another, which a limit must leave enough for. */
function leavesFinalizingCall(
  state: RunState,
  toolChoice: ToolChoice,
  { tools, sourced }: ShownChange,
): PlannedCall['keepsFinalizing'] {
  if (getOnLimit(state.limits) !== 'finalize' || toolChoice.type === 'none') return false
  return (tools ?? filterOfferedTools(state, undefined, sourced)).length > 0
}

/**
 * The same call once more. A finalizing call whose limit was raised since continues as an ordinary one, so its choice of no
 * tools is not repeated.
 */
export function repeatModelCall(
  state: StreamingState,
  now: number,
  model?: ModelRef,
): CallFact | LimitFinding {
  // The tools of the source are in the state since the first attempt.
  const { sourced: _recorded, ...change } = state.attempt.change ?? {}
  return nextModelCall(state, now, { ...repeatPlan(state, model), change })
}

/** The parts of a call that its repetition keeps, whatever it shows. */
export function repeatPlan(
  state: StreamingState,
  model?: ModelRef,
): Omit<CallPlanning, 'change'> & { readonly model: ModelRef } {
  const { toolChoice, finalizing, model: last } = state.attempt
  return {
    finalizing: finalizing && state.metLimit !== undefined,
    model: model ?? (namesModel(state.definition, last) ? last : getCurrentModel(state)),
    ...(!finalizing && { toolChoice }),
  }
}

/** Failures that another model would answer with as well: the request itself is at fault. */
const requestAtFault: ReadonlySet<FailureClass> = new Set(['invalid_request', 'content_filtered'])

/** Returns the model that takes over when the runtime gives up a model; `undefined` after the last. */
export function findModelAfterGivingUp(state: StreamingState): ModelRef | undefined {
  const { failed } = state.attempt
  if (failed === undefined || requestAtFault.has(failed.failure.class)) return undefined
  return findNextFallback(state)
}

/** Returns the model after the current one; `undefined` after the last. */
export function findNextFallback({ definition, attempt }: StreamingState): ModelRef | undefined {
  const models = listModels(definition)
  return models[models.findIndex((known) => sameModel(known, attempt.model)) + 1]
}
