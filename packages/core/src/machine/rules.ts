import type { AgentDefinition } from '../events/agent-definition.ts'
import type { Message, ModelRef, ProviderState } from '../events/content.ts'
import type { ModelRequest, ModelSettings, ToolChoice, ToolDefinition } from '../events/model-request.ts'
import type { JsonObject } from '../values/json.ts'
import type { RunState } from './state.ts'
import type { Fact, RuntimeEvent } from '../events/event.ts'
import type { Signal } from '../events/signals.ts'

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

/** The needs of an agent that takes a conversation over. */
export interface TakingOver {
  readonly definition: AgentDefinition
  /** The messages that it is shown, if not the history as it is. */
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

/**
 * The next action of a run. `facts` are recorded first, in one append; then the controller is asked again, until it answers
 * with an action that has none:
 * - `wait`: something is in flight (`requiredEffects` says what), or a time has to come (`wakeAt`, milliseconds since 1970)
 * - `suspend`: nothing is in flight, and only a command can continue the run
 * - `finished`: the run is done
 */
export type Action =
  | { readonly kind: RecordingKind; readonly facts: readonly Fact[] }
  | { readonly kind: 'wait'; readonly wakeAt?: number }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'finished' }

/** The kind of work that the facts of an action start or settle. */
type RecordingKind =
  | 'call_model'
  | 'deliver_input'
  | 'compact'
  | 'hand_off'
  | 'keep_partial'
  | 'meet_limit'
  | 'collect'
  | 'settle_calls'
  | 'ask_approval'
  | 'run_tools'
  | 'inject'
  | 'finish'
  | 'fire_schedule'

/** Records facts; `undefined` without any. */
export function recordFacts(kind: RecordingKind, facts: readonly Fact[]): Action | undefined {
  return facts.length > 0 ? { kind, facts } : undefined
}

/** Waits for a time, `Infinity` for a report alone; `undefined` once the time has come. */
export function waitUntil(time: number, now: number): Action | undefined {
  if (now >= time) return undefined
  return time === Infinity ? { kind: 'wait' } : { kind: 'wait', wakeAt: time }
}

/** The time and the random number of a decision, passed in so that the same input gives the same events. */
export interface Stamp {
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  /** From 0 (included) to 1 (excluded). */
  readonly random: number
}

/** Why a command is refused. A value, not an error. */
export interface Refusal {
  readonly code:
    | 'run_finished'
    | 'not_finished'
    | 'unknown_call'
    | 'not_awaiting_approval'
    | 'approval_expired'
    | 'not_an_approver'
    | 'approved_before'
    | 'no_standing_approval'
    | 'not_deferred'
    | 'not_raised'
    | 'not_scheduled'
    | 'already_cancelled'
    | 'cancelled'
    | 'not_supported'
    | 'malformed'
    | 'invalid_input'
    | 'run_exists'
    | 'drained'
  readonly message: string
}

/** The facts that follow; none, when the message changes nothing. */
export type Decision = { readonly facts: readonly Fact[] } | { readonly refused: Refusal }

/** The message changes nothing. */
export const nothing: Decision = { facts: [] }

/** The refusal of a command, as a decision. */
export function refuse(code: Refusal['code'], message: string): { readonly refused: Refusal } {
  return { refused: { code, message } }
}

/** The text of the refusal of a command to a finished run, after its status. */
export function describeFinished(status: string): string {
  return `${status}; nothing can be asked of it any more. To continue, start a new run, of its session if it has one, or fork this one.`
}

/** A place in the events of a run, which are on record from the first on. */
export interface RecordedPosition {
  readonly recorded: readonly RuntimeEvent[]
  /** The index of the first event of a decision. */
  readonly index: number
}

export type SignalOf<T extends Signal['type']> = Extract<Signal, { readonly type: T }>

export interface SignalRules<T extends Signal['type']> {
  /** Returns what follows from the signal. One about something that has ended or moved on changes nothing. */
  decide(state: RunState, signal: SignalOf<T>, stamp: Stamp): Decision
  /**
   * The inverse of `decide`: makes the signal again from the events at a place of the record. `undefined` if the record
   * ends within the decision, or does not hold it.
   */
  recover(state: RunState, position: RecordedPosition): Signal | undefined
}
