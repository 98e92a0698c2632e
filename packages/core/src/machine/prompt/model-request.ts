import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type { RequestAddition } from '../../vocabulary/agent/agent-policy.ts'
import type { ModelRequest } from '../../vocabulary/model/model-request.ts'
import type { ToolChoice } from '../../vocabulary/model/tool-definition.ts'
import { mergedSettings, type ModelSettings } from '../../vocabulary/model/model-settings.ts'
import { type ModelRef, sameModel } from '../../vocabulary/model/content.ts'
import type { ShownChange } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { digestOfTwice } from '../../vocabulary/values/digest.ts'
import { historyDigest } from '../messages/history.ts'
import { messagesShown, withShownDigest } from '../messages/shown-messages.ts'
import { offeredTools, sourcedDigest } from '../messages/sourced-tools.ts'
import type { RunState, StreamingState } from '../state/state.ts'

/** What a single call adds to the definition and the history. */
export interface CallOptions {
  readonly model: ModelRef
  readonly toolChoice: ToolChoice
  readonly maxOutputTokens?: number
  readonly change?: ShownChange
}

/** The model settings that apply in this state, in a turn that changes some of them. */
export function settingsOf(
  { definition, modelSettings }: RunState,
  change: ShownChange = {},
): ModelSettings | undefined {
  return mergedSettings(mergedSettings(definition.modelSettings, modelSettings), change.modelSettings)
}

/** The same as a request carries them: how much a reply may hold is a field of its own there, held to what is granted. */
export function writingSettings(state: RunState, change?: ShownChange): ModelSettings | undefined {
  const { maxOutputTokens: _granted, ...settings } = settingsOf(state, change) ?? {}
  return Object.keys(settings).length === 0 ? undefined : settings
}

/** Whether the model may ask for several tools in one reply. */
export function callsInParallel({ definition, parallelToolCalls }: RunState): boolean {
  return parallelToolCalls ?? definition.parallelToolCalls
}

/** The request of the attempt that is under way. */
export function modelRequest(state: StreamingState): ModelRequest {
  return requestIn(state, state.attempt)
}

/** The request of a call in this state. */
export function requestIn(state: RunState, call: Omit<CallOptions, 'model'>): ModelRequest {
  const { toolChoice, maxOutputTokens, change = {} } = call
  const { instructions = state.definition.instructions, parallelToolCalls = callsInParallel(state) } = change
  return {
    instructions,
    messages: messagesShown(state.history, change),
    tools: offeredTools(state, change.tools, change.sourced),
    toolChoice,
    parallelToolCalls,
    ...omitUndefined({ maxOutputTokens, outputSchema: state.definition.output?.schema }),
    ...omitUndefined({ modelSettings: writingSettings(state, change), providerState: state.providerState }),
  }
}

/**
 * Law 7: what names a request. It takes in the model, the definition and the tools of a source by their digests, the run's
 * own settings, the options of the call, and the running digest of the history, so that it costs what the turn adds.
 */
export function requestDigest(state: RunState, options: CallOptions): string {
  const { model, toolChoice, maxOutputTokens, change } = options
  const sourced = sourcedDigest(state, change?.sourced)
  // Once when the call is decided, and once when it is audited.
  return digestOfTwice({
    model,
    definition: state.definition.digest,
    toolChoice,
    history: historyDigest(state.history),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(state.modelSettings && { modelSettings: state.modelSettings }),
    ...(state.parallelToolCalls !== undefined && { parallelToolCalls: state.parallelToolCalls }),
    ...(change !== undefined && { change: withShownDigest(state.history, change) }),
    ...(sourced !== undefined && { sourced }),
    ...(state.providerState && { providerState: { ...state.providerState } }),
  })
}

/** What the options of a model's adapter add to its requests, as the definition pins it. */
export function additionsOf(
  { policy }: AgentDefinition,
  model: ModelRef,
): readonly RequestAddition[] | undefined {
  return policy?.models?.find((pinned) => sameModel(pinned.model, model))?.additions
}

/** The models that an agent names: its own, then its fallbacks, in order. */
export function modelsOf({ model, fallbacks = [] }: AgentDefinition): readonly ModelRef[] {
  return [model, ...fallbacks.map((fallback) => fallback.model)]
}

/** Whether an agent names a model. */
export function namesModel(definition: AgentDefinition, model: ModelRef): boolean {
  return modelsOf(definition).some((known) => sameModel(known, model))
}
