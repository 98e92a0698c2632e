import { type ModelRequest, type RunState } from '@tallystick/core'
import { omitUndefined, option, requireOptions } from '@tallystick/core/kit'
import {
  additionsOf,
  callsInParallel,
  currentModel,
  modelRequest,
  nextAction,
  transcript,
  writingSettings,
} from '@tallystick/core/machine'
import { type EventOf, type ModelRef, type RequestAddition } from '@tallystick/core/vocabulary'

/** The request that a model got, or would get, in a state of a run. */
export interface RebuiltRequest {
  readonly model: ModelRef
  readonly request: ModelRequest
  /**
   * The recorded digest of the model call that is in flight in this state, which this request has. Absent if no call is
   * in flight: then this is the request that a call would send here, as far as the ledger can tell. Changes by an
   * agent's `prepareTurn` are not in it, and calls without a result have placeholders.
   */
  readonly requestDigest?: string
  /** What options of the model's adapter add to the request, or replace in it. Values are not on record. */
  readonly additions?: readonly RequestAddition[]
}

const runState = option.valueThat(
  'the state of a run, such as await foldTo(ledger, runId, seq)',
  (value) => typeof value === 'object' && value !== null && 'phase' in value && 'definition' in value,
)

/** Returns the model request of a state: with `foldTo`, that of any event of a run. Pure, without any call. */
export function rebuiltRequest(state: RunState): RebuiltRequest {
  requireOptions('rebuiltRequest', runState, state, 'the state')
  if (state.phase === 'streaming') {
    const { model, requestDigest } = state.attempt
    return { model, requestDigest, request: modelRequest(state), ...addedTo(state, model) }
  }
  const { instructions, tools, output } = state.definition
  const { model, toolChoice, maxOutputTokens } = callToCome(state)
  return {
    model,
    request: {
      instructions,
      messages: transcript(state),
      tools,
      toolChoice,
      parallelToolCalls: callsInParallel(state),
      ...omitUndefined({
        maxOutputTokens,
        outputSchema: output?.schema,
        modelSettings: writingSettings(state),
        providerState: state.providerState,
      }),
    },
    ...addedTo(state, model),
  }
}

function addedTo({ definition }: RunState, model: ModelRef): Pick<RebuiltRequest, 'additions'> {
  return omitUndefined({ additions: additionsOf(definition, model) })
}

type CallOptions = Pick<EventOf<'model_call_started'>, 'model' | 'toolChoice' | 'maxOutputTokens'>

/** Returns the options of the next model call, if one is due; else those of an unhindered call. */
function callToCome(state: RunState): CallOptions {
  // Only the code knows the agent that takes over.
  const isHandedOver = state.phase === 'injecting' && state.handoff !== undefined
  const next = isHandedOver ? undefined : nextAction(state, state.at)
  const due = next?.kind === 'call_model' ? next.facts : []
  for (const fact of due) if (fact.type === 'model_call_started') return fact
  const { maxOutputTokens } = state.definition
  return { model: currentModel(state), toolChoice: { type: 'auto' }, ...omitUndefined({ maxOutputTokens }) }
}
