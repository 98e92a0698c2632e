import type { Observable } from 'rxjs'
import type { AnyContext, ToolOrigin } from '../events/agent-definition.ts'
import type { Handoff } from '../events/event.ts'
import type { Background, Grant, LimitName, Repeats, RetryPolicy } from '../events/limits.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import type { JsonObject } from '../values/json.ts'
import type { Message } from '../events/content.ts'
import type { CallVerdict, Reconciliation, RepairedInput, ToolSignal, UnfitInput } from '../events/signals.ts'
import type { Recovery, ToolDefinition, ToolEffect } from '../events/model-request.ts'

/** Identifies one tool call. */
export interface CallContext<Context = unknown> {
  readonly runId: RunId
  readonly turn: number
  readonly toolCallId: ToolCallId
  /** The value that the application passed to this run, such as the signed-in user. Never recorded. */
  readonly context: Context
}

/** One start of one call. */
export interface ToolRun<Context = unknown> extends CallContext<Context> {
  readonly input: JsonObject
  /** 1, or more when a call is tried again after a failure, or started again after a crash. */
  readonly attempt: number
  /** The same at every attempt of this call, new in a fork. Pass it to the service that the tool calls. */
  readonly idempotencyKey: string
  /** Emits the reason once when the tool should stop. The tool may still report its ending within the grace time. */
  readonly cancelled$: Observable<string>
  /**
   * Returns the conversation as the agent's model sees it, up to the message that asked for this call: without messages
   * that a handoff, an edit of the past or a summary removed. Absent if the call belongs to no conversation.
   */
  readonly messages?: () => readonly Message[]
  /**
   * Returns how much of models the tool may still use at this moment, of what the run's limits leave: an absent field has no
   * limit. Or names the limit that leaves too little. The tool reports each model call that it makes as `spent` of a
   * `tool_progressed`. Absent if the call belongs to no run.
   */
  readonly left?: () => Grant | { readonly limit: LimitName }
}

/**
 * A tool as the runtime sees it. `defineTool` of `@tallystick/tools` makes one from a schema and a function.
 *
 * - `check` decides whether the call may run, before it runs. It has no side effects. A throw counts as a refusal, and so does
 *   a check that has not ended after a minute.
 * - `run` starts on subscription, reports progress, then exactly one `tool_ended` or `tool_deferred`, and completes.
 *   An error, a completion without an ending, or an ending that JSON cannot carry becomes the outcome `failed`;
 *   progress that JSON cannot carry is left out. After unsubscribing, the runtime ignores every report of the tool.
 * - `repair`, where a tool has it, is asked once for each call whose input its `check` refuses as `invalid_input`, or was not a
 *   JSON object. It returns the input that the model must have meant, which is checked, approved, recorded and run in its place.
 *   Pure: a replay asks it again.
 * - `reconcile` asks the outside world whether a call in doubt took place. A throw, or no answer in time, counts as
 *   `unknown`, and so does an outcome that is impossible for a call that may have run.
 *
 * `Context` is the part of the run's context that the tool needs: `unknown` if it needs none.
 */
export interface Tool<in Context = AnyContext> extends ToolDefinition {
  readonly effect: ToolEffect
  readonly recovery: Recovery
  /** After this many milliseconds an attempt of the call is given up as `timed_out`. */
  readonly timeoutMs?: number
  /** After this many milliseconds without a report of progress an attempt of the call is given up as `timed_out`. */
  readonly quietMs?: number
  /**
   * How often a call is tried again whose attempt ended as `retryable`, or in an error, and after which waits. An attempt
   * that timed out, or whose effect is unknown (`interrupted`), is tried again only where the tool reads, or its
   * recovery is `rerun`.
   */
  readonly retry?: RetryPolicy
  /** The most characters of text that the model reads of a result; instead of those of the agent. */
  readonly maxResultChars?: number
  /** Calls of one run that share this key run one at a time, in the order of the requests, also where they are reads. */
  readonly serial?: string
  /** How many calls of this tool run at the same time in a run, within the run's `maxConcurrency`. */
  readonly maxConcurrency?: number
  /**
   * The tool is meant to be asked again, such as a poll of a job: equal answers in a row, and equal errors, are then no sign of
   * a stuck model (`maxRepeats`). With `minIntervalMs` the runtime lets that much time pass between an answer and the next equal
   * call.
   */
  readonly repeats?: Repeats
  /**
   * Its calls go on beside the run: the model gets a handle at once, and the result as a message when it comes. A run that would end
   * waits for it, or leaves it.
   */
  readonly background?: Background
  /** When its calls need an approval, in a few words for the record: `always`, `never`, `by code`. `check` decides. */
  readonly approval?: string
  /** Where the tool comes from, if not from the application: recorded, so that the name can be traced back. */
  readonly origin?: ToolOrigin
  /**
   * The agent that does the work in a run of its own; only `agentTool` makes such a tool, and only a runtime runs it.
   */
  readonly child?: string
  /** A successful call hands the conversation over to this agent. */
  readonly handoff?: Handoff
  check(input: JsonObject, context: CallContext<Context>): CallVerdict | Promise<CallVerdict>
  repair?(unfit: UnfitInput): RepairedInput | undefined
  run(call: ToolRun<Context>): Observable<ToolSignal>
  reconcile?(call: Omit<ToolRun<Context>, 'cancelled$' | 'messages' | 'left'>): Promise<Reconciliation>
}

/**
 * Tools that may change while a run is under way, such as those of MCP servers. `tools` is read before each turn: what the
 * turn offers is recorded with its model call, and a call of a tool that has been removed since is `unknown_tool`.
 */
export interface ToolSource<in Context = AnyContext> {
  /** The current tools. A tool with the name of another tool of the agent is left out. */
  readonly tools: readonly Tool<Context>[]
  /**
   * Names the tools of the source that the next turn offers, in order; without it, all of them. Pure: the same conversation
   * gives the same names in every process. A call of a tool that is not offered is `unknown_tool`.
   */
  readonly offered?: (turn: OfferingTurn) => readonly string[]
}

/** The turn for which a source names its tools. */
export interface OfferingTurn {
  /** Returns the conversation as the agent's model sees it. */
  readonly messages: () => readonly Message[]
  /** The names of the source's tools that the last turn of the run offered. */
  readonly before: readonly string[]
}
