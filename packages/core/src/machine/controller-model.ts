import type { ModelRef } from '../vocabulary/content.ts'
import type { FactOf } from '../vocabulary/event.ts'
import type { FailureClass } from '../vocabulary/failure.ts'
import { present } from '../vocabulary/present.ts'
import { requestDigest, sameModel } from './model-request.ts'
import type { TurnChange } from './rules.ts'
import type { RunState, StreamingState } from './state.ts'
import { currentModel } from './state-views.ts'

/** What the next model call is to be. */
export interface CallPlanning {
  /** The one call past a limit, which writes the answer. */
  readonly finalizing?: boolean
  /** Output tokens that are left for it. */
  readonly outputTokens?: number | undefined
  readonly change?: TurnChange | undefined
  /** Where not the one that the run uses now. */
  readonly model?: ModelRef
}

const noTools = { type: 'none' } as const
const usual = { finalizing: false, outputTokens: Infinity, change: {} as TurnChange }

/** The fact that starts a model call: the first attempt of a turn, or the next attempt of the same. */
export function callModel(state: RunState, planning: CallPlanning): FactOf<'model_call_started'> {
  const again = state.phase === 'streaming'
  const { finalizing, outputTokens, change } = { ...usual, ...present(planning) }
  const { model: changedModel, toolChoice = { type: 'auto' }, maxOutputTokens, ...shown } = change
  const own = maxOutputTokens ?? state.definition.maxOutputTokens ?? Infinity
  const options = {
    model: planning.model ?? changedModel ?? currentModel(state),
    toolChoice: finalizing ? noTools : toolChoice,
    ...present({
      maxOutputTokens: finite(Math.min(outputTokens, own)),
      change: Object.keys(shown).length > 0 ? shown : undefined,
    }),
  }
  return {
    ...{ type: 'model_call_started', turn: state.turn + (again ? 0 : 1) },
    attempt: again ? state.attempt.number + 1 : 1,
    requestDigest: requestDigest(state, options),
    ...options,
    finalizing,
  }
}

function finite(amount: number): number | undefined {
  return amount === Infinity ? undefined : amount
}

/** The same call once more. */
export function callAgain(
  state: StreamingState,
  outputTokens: number | undefined,
  model?: ModelRef,
): FactOf<'model_call_started'> {
  const { toolChoice, finalizing, change, model: last } = state.attempt
  return callModel(state, {
    finalizing,
    outputTokens,
    model: model ?? last,
    change: { ...change, toolChoice },
  })
}

/** Failures that another model would answer with as well: the request itself is at fault. */
const requestAtFault: ReadonlySet<FailureClass> = new Set(['invalid_request', 'content_filtered'])

/** The same call to the next fallback model, when a model is given up; `undefined` where there is none. */
export function afterGivingUp(
  state: StreamingState,
  outputTokens: number | undefined,
): FactOf<'model_call_started'> | undefined {
  const { failed, model } = state.attempt
  if (failed === undefined || requestAtFault.has(failed.failure.class)) return undefined
  const models = [state.definition.model, ...(state.definition.fallbacks ?? []).map((other) => other.model)]
  const next = models[models.findIndex((known) => sameModel(known, model)) + 1]
  return next && callAgain(state, outputTokens, next)
}
