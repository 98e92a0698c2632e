import { omitUndefined } from '../values/omit-undefined.ts'
import type { JsonObject } from '../values/json.ts'
import type { ModelSettings } from '../model/model-settings.ts'
import type { ToolChoice } from '../model/tool-definition.ts'
import type { ProviderState } from '../model/provider-state.ts'
import type { RecordingPolicy } from './recording-policy.ts'
import type { FallbackModel } from './agent-definition.ts'

/** Names that an application knows a run by, for its traces, lists and exports. No model is shown them. */
export interface RunLabels {
  readonly workflowName?: string
  readonly traceId?: string
  readonly groupId?: string
  readonly tags?: readonly string[]
  readonly metadata?: JsonObject
}

/** The model of a run, over that of each of its agents, with what its adapter is set to. */
export interface GivenModel extends FallbackModel {
  readonly options?: JsonObject
}

/** What a run is given over whichever agent is active, as its first event records it. */
export interface RunGiven {
  readonly givenModel?: GivenModel
  /** Each setting overrides the agent's. */
  readonly modelSettings?: ModelSettings
  /** `none` and `auto` hold for the whole run, `any` and a named tool for its first turn. */
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
  /** The past that its provider keeps. */
  readonly providerState?: ProviderState
  /** Which events it records, each over what its agents say. */
  readonly recording?: RecordingPolicy
  readonly labels?: RunLabels
  /** When the run ends at the latest, waits included, in milliseconds since 1970 UTC. */
  readonly deadlineAt?: number
  /** The key that its id is derived from: the same key begins no second run. */
  readonly idempotencyKey?: string
}

/** These fields alone, of what has more. */
export function givenOf(run: { readonly [Name in keyof RunGiven]?: RunGiven[Name] | undefined }): RunGiven {
  const { givenModel, modelSettings, toolChoice, parallelToolCalls, recording } = run
  const { labels, deadlineAt, idempotencyKey, providerState } = run
  return omitUndefined({
    givenModel,
    modelSettings,
    toolChoice,
    parallelToolCalls,
    recording,
    providerState,
    labels,
    deadlineAt,
    idempotencyKey,
  })
}
