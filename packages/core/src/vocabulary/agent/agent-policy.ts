import type { ModelRef } from '../model/content.ts'
import type { JsonObject } from '../values/json.ts'
import type { Limits, RetryPolicy } from '../limits/limits.ts'
import type { OutputPolicy } from './output-policy.ts'
import type { RecordingPolicy } from './recording-policy.ts'
import type { Recovery, ToolEffect } from '../model/tool-definition.ts'

/** The server that a tool comes from, and its name there, which may differ from the name for models. */
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
  /** `allowed`: meant to be asked again, such as a poll, so equal answers in a row are no sign of a stuck model. */
  readonly repeats?: 'allowed'
  /** When its calls need an approval, in the tool's words. */
  readonly approval?: string
  /** Present for a tool of another process, such as an MCP server. */
  readonly origin?: ToolOrigin
}

/**
 * A field of the wire's request that an option of the adapter sets, beside what the ledger shows of the request. Its
 * value is not on record, unless the adapter was told to keep it among its options.
 */
export interface RequestAddition {
  /** The adapter's option, such as `extraBody`. */
  readonly option: string
  /** The field as the wire names it, such as `instructions` or `tools.pay.defer_loading`; of a header, its name. */
  readonly field: string
  /** Present if the adapter otherwise writes this field from the request, so that what the ledger shows of it is not sent. */
  readonly replaces?: true
  /** SHA-256 over the canonical JSON of the value, in hex, credentials left out. Absent if the value is a credential. */
  readonly digest?: string
}

/** The settings of a model's adapter; at least one of the two. */
export interface PinnedModel {
  readonly model: ModelRef
  /** The adapter's settings: its server, the conversation that a service keeps, how the model works; no keys. */
  readonly options?: JsonObject
  readonly additions?: readonly RequestAddition[]
}

/**
 * How the runs of an agent are driven, in addition to what its models see. It is part of the definition, so that a
 * resume by changed code is detected (`onDrift`). Of a policy that is a function, only its presence is recorded.
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
  /** Which events its runs record, if not all. */
  readonly recording?: RecordingPolicy
  /** How its replies are shown while they are written, where not as they are. */
  readonly outputStream?: OutputPolicy
}
