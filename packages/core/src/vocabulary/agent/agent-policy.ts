import type { ModelRef } from '../model/content.ts'
import type { JsonObject } from '../values/json.ts'
import type { Limits, RetryPolicy } from '../limits/limits.ts'
import type { OutputPolicy } from './output-policy.ts'
import type { RecordingPolicy } from './recording-policy.ts'
import type { Recovery, ToolEffect } from '../model/tool-definition.ts'

/** The server that a tool comes from, and its name there: what models call may be another name. */
export interface ToolOrigin {
  readonly server: string
  readonly name: string
}

/** How calls of a tool are treated. */
export interface ToolPolicy {
  readonly name: string
  readonly effect: ToolEffect
  readonly recovery: Recovery
  readonly timeoutMs?: number
  /** How long an attempt may go without a report of progress, in milliseconds. */
  readonly quietMs?: number
  /** How its failed calls are tried again; not at all where absent. */
  readonly retry?: RetryPolicy
  readonly maxResultChars?: number
  /** Shared by tools whose calls run one at a time. */
  readonly serial?: string
  readonly maxConcurrency?: number
  /** When a person is asked about its calls, in its own words. */
  readonly approval?: string
  /** Present for a tool of another process, such as an MCP server. */
  readonly origin?: ToolOrigin
}

/** What the adapter of a model is set to. */
export interface PinnedModel {
  readonly model: ModelRef
  /** As the adapter tells it: where it calls, the conversation that a service keeps, how the model is to work; no keys. */
  readonly options: JsonObject
}

/**
 * How the runs of an agent are driven, in addition to what its models see. It is part of the definition, so that a
 * resume by changed code is detected (`onDrift`). Policies that are functions are recorded only as being there.
 */
export interface AgentPolicy {
  readonly limits: Limits
  readonly retry?: Partial<RetryPolicy>
  readonly timeouts?: { readonly idleMs?: number; readonly totalMs?: number; readonly prepareMs?: number }
  readonly compaction?: { readonly maxContextTokens: number; readonly keepMessages: number }
  readonly tools?: readonly ToolPolicy[]
  /** The most characters of text that its models read of a tool's result. */
  readonly maxResultChars?: number
  /** The agent has an approval policy of its own. */
  readonly approval?: true
  readonly models?: readonly PinnedModel[]
  /** Which events its runs record, where not all. */
  readonly recording?: RecordingPolicy
  /** How its replies are shown while they are written, where not as they are. */
  readonly outputStream?: OutputPolicy
}
