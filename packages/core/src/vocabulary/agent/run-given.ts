import { omitUndefined } from '../values/omit-undefined.ts'
import type { JsonObject } from '../values/json.ts'
import type { Limits } from '../limits/limits.ts'
import type { ModelSettings } from '../model/model-settings.ts'
import type { ToolChoice } from '../model/tool-definition.ts'
import type { ProviderState } from '../model/provider-state.ts'
import type { RecordingPolicy } from './recording-policy.ts'
import type { FallbackModel } from './agent-definition.ts'
import type { RequestAddition } from './agent-policy.ts'

/** Labels that an application gives a run, for traces, lists and exports. Models do not see them. */
export interface RunLabels {
  readonly workflowName?: string
  readonly traceId?: string
  readonly groupId?: string
  readonly tags?: readonly string[]
  readonly metadata?: JsonObject
}

/** The model of a run, which replaces that of each of its agents, with the settings of its adapter. */
export interface GivenModel extends FallbackModel {
  readonly options?: JsonObject
  readonly additions?: readonly RequestAddition[]
}

/** The options of a run that apply to every active agent, as its first event records them. */
export interface RunGiven {
  readonly givenModel?: GivenModel
  /** Each setting overrides the agent's. */
  readonly modelSettings?: ModelSettings
  /** `none` and `auto` hold for the whole run, `any` and a named tool for its first turn. */
  readonly toolChoice?: ToolChoice
  readonly parallelToolCalls?: boolean
  /** The past that its provider keeps. */
  readonly providerState?: ProviderState
  /** Which events it records; each setting replaces that of its agents. */
  readonly recording?: RecordingPolicy
  readonly labels?: RunLabels
  /** The latest end of the run, waits included, in milliseconds since 1970 UTC. */
  readonly deadlineAt?: number
  /** The key that its id is derived from, so that the same key starts no second run. */
  readonly idempotencyKey?: string
  /** The limits that a start with such a key gave itself: a retry gives the same. */
  readonly givenLimits?: Limits
  /** Who started it, by the name that the application knows its callers by. A context is made for this one. */
  readonly owner?: string
}

/** These fields alone, of what has more. */
export function givenOf(run: { readonly [Name in keyof RunGiven]?: RunGiven[Name] | undefined }): RunGiven {
  const { givenModel, modelSettings, toolChoice, parallelToolCalls, recording } = run
  const { labels, deadlineAt, idempotencyKey, givenLimits, owner, providerState } = run
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
    givenLimits,
    owner,
  })
}
