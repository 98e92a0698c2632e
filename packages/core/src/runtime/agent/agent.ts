import type { Rules, TurnChange, TurnRequest } from '../../machine/rules.ts'
import type { RunState } from '../../machine/state.ts'
import type { Model } from '../../models/model.ts'
import type { Tool, ToolSource } from '../../tools/tool.ts'
import type { AgentDefinition, AnyContext, RecordingPolicy } from '../../events/agent-definition.ts'
import type { Message } from '../../events/content.ts'
import type { GivenLimits, GivenRetryPolicy, Limits, RetryPolicy } from '../../events/limits.ts'
import type { JsonObject } from '../../values/json.ts'
import type { ModelSettings, RefusalPolicy } from '../../events/model-request.ts'
import type { ApprovalPolicy } from './approval-policy.ts'
import type { Guardrail } from './guardrail.ts'
import type { OutputReader, OutputSchema } from '../schema/output-schema.ts'
import type { OutputStreamOptions } from '../output/output-stream.ts'

/** How a history that grows too long is shortened for the model. The ledger keeps all of it. */
export interface CompactionOptions {
  /** The runtime shortens the history before a call whose input it estimates at more tokens than this. */
  readonly maxContextTokens: number
  /** How many of the newest messages stay as they are. */
  readonly keepMessages: number
  /**
   * What replaces the older messages: the summary of a model, or the text that a pure function returns. Without it they
   * are left out.
   */
  readonly summarize?: (Model | ((messages: readonly Message[]) => string)) | undefined
  /** Instructions for the model that sums up; `summaryInstructions` if not given. */
  readonly instructions?: string | undefined
}

/** Time limits of a model call, in milliseconds. A call that exceeds one has failed, and is tried again. */
export interface ModelTimeouts {
  /** The longest silence of the model. */
  readonly idleMs?: number | undefined
  /** The longest time from the start of the call to its end. */
  readonly totalMs?: number | undefined
  /** The longest wait for an async `prepareTurn`. Default: a minute. */
  readonly prepareMs?: number | undefined
}

/** Names the tools of a turn, before its model call. */
export type ToolsInTurn<in Context = AnyContext> = (
  context: Context,
  state: RunState,
) => readonly Tool<Context>[]

/** The parts of an agent. `Context` is what the application passes to its runs. */
export interface AgentOptions<Output = string, Context = AnyContext> {
  /** Names the agent in the ledger: a resume finds it by this name. */
  readonly name: string
  /** What it is good for; models of other agents read it. */
  readonly description?: string | undefined
  /**
   * Instructions for the model: a text, or a pure function of the run's context. The runtime calls the function when
   * the run begins and when the conversation is handed over to the agent. The text is recorded and holds for the rest
   * of the run. A function that names a second parameter, the state, is called before each turn as well, with it; what
   * it answers then holds for the turn, and is recorded where it differs.
   */
  readonly instructions: string | ((context: Context, state?: RunState) => string)
  readonly model: Model
  /**
   * Its tools, or a pure function that names those of each turn. What the function offers is recorded with the model call;
   * agents that work as tools do not come from it.
   */
  readonly tools?: readonly Tool<Context>[] | ToolsInTurn<Context> | undefined
  /** More tools, which may change between turns: `toolSource: await mcpTools({ … })`. */
  readonly toolSource?: ToolSource<Context> | undefined
  /** Limits of each run; missing ones are those of `defaultLimits`. */
  readonly limits?: GivenLimits | undefined
  /** Whether the model may ask for several tools in one reply; it may by default. */
  readonly parallelToolCalls?: boolean | undefined
  /** Output tokens of one reply at most; the adapter's own bound where not given. */
  readonly maxOutputTokens?: number | undefined
  /**
   * How its models write: `temperature`, `topP`, `stop`, `seed`, and options of one provider. A run may override
   * them.
   */
  readonly modelSettings?: ModelSettings | undefined
  /** How failed model calls are retried; `defaultRetryPolicy` if not given. */
  readonly retry?: GivenRetryPolicy | undefined
  /** How long a model call may take; the adapter's own limits if not given. */
  readonly timeouts?: ModelTimeouts | undefined
  /** Models that take over, in order, when the runtime gives up the one before them. */
  readonly fallbacks?: readonly Model[] | undefined
  /** What follows a refusal; if not given, what the model's vendor advises. */
  readonly onRefusal?: RefusalPolicy | undefined
  /**
   * The most characters of text that the model reads of a tool's result: of a longer one the beginning and the end, and
   * what was left out. The ledger holds all of it. A tool may say otherwise; no limit if not given.
   */
  readonly maxResultChars?: number | undefined
  /** Decides which calls need a person's approval, together with the policy of each tool. */
  readonly approval?: ApprovalPolicy<Context> | undefined
  /** Policy as code, around the model and the tools. */
  readonly guardrails?: readonly Guardrail<Context>[] | undefined
  /** The agents it may hand the conversation over to. A function if agents name each other in a circle. */
  readonly handoffs?: Handoffs<Context> | undefined
  /** The schema of the answer; a text if not given. */
  readonly output?: OutputSchema<Output> | undefined
  /** How often the model may repair an answer that does not fit; 2 if not given. */
  readonly maxOutputRepairs?: number | undefined
  /** Ends the run as `stopped` before another model call, when it returns true. Pure, and not async. */
  readonly stopWhen?: ((state: RunState, context: Context) => boolean) | undefined
  /**
   * Changes a turn before its model call: sees the whole request, and returns the parts that it changes. It may be
   * async. It must change nothing outside, since it is called again if input arrives meanwhile, and after a crash. Its
   * changes are on record.
   */
  readonly prepareTurn?: PrepareTurn<Context> | undefined
  /** Shortens, in what the model sees, a history that grows too long. */
  readonly compaction?: CompactionOptions | undefined
  /** Which of the events that nothing else depends on its runs record; by default all of them. */
  readonly recording?: RecordingPolicy | undefined
  /** Changes the text of its replies before subscribers see it. Both what it wrote and what was shown are on record. */
  readonly outputStream?: OutputStreamOptions<Context> | undefined
}

/** A turn that is to be prepared: the state of the run, and the request as it would be sent. */
export type TurnToPrepare = RunState & { readonly request: TurnRequest }

/** Returns the changes of the request of a turn; `undefined` for no change. */
export type PrepareTurn<Context = AnyContext> = (
  turn: TurnToPrepare,
  context: Context,
) => TurnChange | undefined | Promise<TurnChange | undefined>

/** What an agent's code decides at each turn, with the context of the run. */
export interface AgentRules<in Context = AnyContext> extends Omit<Rules, 'stopWhen' | 'prepareTurn'> {
  readonly stopWhen?: (state: RunState, context: Context) => boolean
  readonly prepareTurn?: PrepareTurn<Context>
}

/** A target of a handoff: made by `handoff` or `handBack`; an agent alone is one as well. */
export interface HandoffTarget<in Context = AnyContext> {
  readonly to: string
  /** Absent if the conversation goes back to the caller that started the run. */
  readonly agent?: Agent<unknown, Context>
  /** Gets the input of the call, too. */
  readonly filter?: (messages: readonly Message[], input: JsonObject) => readonly Message[]
  readonly tool: Tool<Context>
}

/** The agents that an agent may hand over to. */
export type Handoffs<Context = AnyContext> =
  | readonly (Agent<unknown, Context> | HandoffTarget<Context>)[]
  | (() => readonly (Agent<unknown, Context> | HandoffTarget<Context>)[])

/**
 * An agent: a model, its instructions, and its tools. Made by `defineAgent`. `Context` is what its runs need from the
 * application, `unknown` if they need nothing.
 */
export interface Agent<Output = string, in Context = AnyContext> {
  readonly name: string
  readonly description?: string
  readonly instructions: string | ((context: Context, state?: RunState) => string)
  readonly model: Model
  /** Its tools, and those that hand over. */
  readonly tools: readonly Tool<Context>[]
  /** Those of each turn, beside these. */
  readonly toolsInTurn?: ToolsInTurn<Context>
  readonly toolSource?: ToolSource<Context>
  readonly limits: Limits
  readonly parallelToolCalls: boolean
  readonly retry: Partial<RetryPolicy>
  readonly timeouts: ModelTimeouts
  readonly fallbacks: readonly Model[]
  readonly maxResultChars?: number
  readonly approval?: ApprovalPolicy<Context>
  readonly guardrails: readonly Guardrail<Context>[]
  readonly handoffs: readonly HandoffTarget<Context>[]
  readonly output?: OutputReader<Output>
  readonly outputStream?: OutputStreamOptions<Context>
  /** The model that sums up. */
  readonly summarizer?: Model
  readonly rules: AgentRules<Context>
  /** What the ledger records of the agent, except instructions made for one run. */
  readonly definition: AgentDefinition
}
