import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type { Message, ModelRef } from '../../vocabulary/model/content.ts'
import type { ModelRequest } from '../../vocabulary/model/model-request.ts'
import type { ModelSettings } from '../../vocabulary/model/model-settings.ts'
import type { ProviderState } from '../../vocabulary/model/provider-state.ts'
import type { JsonObject } from '../../vocabulary/values/json.ts'
import type { ToolChoice, ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
import type { RunState } from './state.ts'

/** A model call as it would be made. */
export interface TurnRequest extends ModelRequest {
  readonly model: ModelRef
}

/**
 * The parts of a turn's request to change. The difference from the request that would be sent is recorded with the
 * model call.
 */
export interface TurnChange {
  readonly instructions?: string | undefined
  /** The tools of the request to offer, by name or as they are in the request. */
  readonly tools?: readonly (string | ToolDefinition)[] | undefined
  readonly toolChoice?: ToolChoice | undefined
  /** One of the agent's models: its own, or a fallback. */
  readonly model?: ModelRef | undefined
  /**
   * The messages that the model sees instead of the history, for redaction or trimming. Calls and results stay paired.
   */
  readonly messages?: readonly Message[] | undefined
  /** Each setting overrides that of the run and of the agent. */
  readonly modelSettings?: ModelSettings | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly maxOutputTokens?: number | undefined
  /** As in the request: a turn cannot change them. */
  readonly outputSchema?: JsonObject | undefined
  readonly providerState?: ProviderState | undefined
}

/** How a history that grows too long is shortened for the model. The ledger keeps all of it. */
export interface Compaction {
  /** The history is shortened before a call whose input is estimated to have more tokens than this. */
  readonly maxContextTokens: number
  /** How many of the newest messages stay as they are. */
  readonly keepMessages: number
  /**
   * Returns a summary of the older messages. Pure. Without it, the definition's `summarizer` sums them up; without
   * that, too, they are left out.
   */
  readonly summarize?: (messages: readonly Message[]) => string
}

/** What another agent needs to take a conversation over. */
export interface TakingOver {
  readonly definition: AgentDefinition
  /** What it is shown of the past, where that is not the history as it is. */
  readonly messages?: readonly Message[]
}

/** Code of the agent that the controller asks. Pure functions of the state: a replay asks them again. */
export interface Rules {
  /** Ends the run as `stopped` before another model call, when it answers true. */
  readonly stopWhen?: (state: RunState) => boolean
  /** Changes the next turn; asked before its first attempt. Where the answer is waited for: `pending`, and asked again then. */
  readonly prepareTurn?: (state: RunState, request: TurnRequest) => TurnChange | undefined | 'pending'
  /** The tools of the agent's source now; asked once a turn, before its first attempt. A replay takes them from the record. */
  readonly sourcedTools?: (state: RunState) => readonly ToolDefinition[]
  readonly compaction?: Compaction
  /** Returns the agent that takes over after a handoff tool; `undefined` for other tools. */
  readonly handOff?: (tool: string, messages: readonly Message[]) => TakingOver | undefined
}
