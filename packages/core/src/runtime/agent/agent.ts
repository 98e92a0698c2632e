import type { Rules, TurnChange } from '../../machine/state/rules.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Model } from '../../ports/model.ts'
import type { Tool } from '../../ports/tool.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { AgentDefinition } from '../../vocabulary/agent/agent-definition.ts'
import type { Message } from '../../vocabulary/model/content.ts'
import type { GivenLimits, GivenRetryPolicy, Limits, RetryPolicy } from '../../vocabulary/limits/limits.ts'
import type { ModelSettings } from '../../vocabulary/model/model-settings.ts'
import type { RefusalPolicy } from '../../vocabulary/model/refusal.ts'
import type { ApprovalPolicy } from './approval-policy.ts'
import type { Guardrail } from './guardrail.ts'
import type { OutputReader, OutputSchema } from './output-schema.ts'

/** How a history that grows too long is made shorter in what the model sees. Nothing leaves the ledger. */
export interface CompactionOptions {
  /** The history is shortened before a call whose input is estimated to have more tokens than this. */
  readonly contextTokensMax: number
  /** How many of the newest messages stay as they are. */
  readonly keepMessages: number
  /**
   * What the older messages become: what a model sums them up as, or what a pure function says of them. Without it they
   * are left out.
   */
  readonly summarize?: (Model | ((messages: readonly Message[]) => string)) | undefined
  /** What a model that sums up is told; `summaryInstructions` where not given. */
  readonly instructions?: string | undefined
}

/** How long a model call may take, in milliseconds; a call that takes longer has failed, and is tried again. */
export interface ModelTimeouts {
  /** Without any report from the model. */
  readonly idleMs?: number | undefined
  /** From start to end. */
  readonly totalMs?: number | undefined
}

/** What an agent is put together from. `Context` is what its runs are given by the application. */
export interface AgentOptions<Output = string, Context = AnyContext> {
  /** Names the agent in the ledger: a resume finds it by this name. */
  readonly name: string
  /** What it is good for, as other agents' models read it. */
  readonly description?: string | undefined
  /**
   * What the model is told: a text, or a pure function of the run's context, which is asked when the run begins and when
   * the conversation is handed over to the agent. What it answers is recorded and holds for the rest of the run.
   */
  readonly instructions: string | ((context: Context) => string)
  readonly model: Model
  readonly tools?: readonly Tool<Context>[] | undefined
  /** Maxima of each run; `defaultLimits` stand where none is named. */
  readonly limits?: GivenLimits | undefined
  /** Whether the model may ask for several tools in one reply; it may by default. */
  readonly parallelToolCalls?: boolean | undefined
  /** Output tokens of one reply at most; the adapter's own bound where not given. */
  readonly maxOutputTokens?: number | undefined
  /** How its models write: `temperature`, `topP`, `stop`, `seed`, and options of one provider. A run may say otherwise. */
  readonly modelSettings?: ModelSettings | undefined
  /** How failed model calls are tried again; `defaultRetryPolicy` where nothing is said. */
  readonly retry?: GivenRetryPolicy | undefined
  /** How long a model call may take; the adapter's own bounds where nothing is said. */
  readonly timeouts?: ModelTimeouts | undefined
  /** Models that take over, in order, when the one before them is given up. */
  readonly fallbacks?: readonly Model[] | undefined
  /** What becomes of a refusal; as the vendor of the model advises, where nothing is said. */
  readonly onRefusal?: RefusalPolicy | undefined
  /** The agent's own say about which calls a person is asked about, beside that of each tool. */
  readonly approval?: ApprovalPolicy<Context> | undefined
  /** Policy as code, around the model and the tools. */
  readonly guardrails?: readonly Guardrail<Context>[] | undefined
  /** Whom it may hand the conversation over to. A function where agents name each other in a circle. */
  readonly handoffs?: Handoffs<Context> | undefined
  /** What the answer has to be; a text where nothing is said. */
  readonly output?: OutputSchema<Output> | undefined
  /** How often the model may try again when its answer does not fit; 2 where not given. */
  readonly outputRepairsMax?: number | undefined
  /** Ends the run as `stopped` before another model call, when it answers true. Pure, and not async. */
  readonly stopWhen?: ((state: RunState, context: Context) => boolean) | undefined
  /**
   * Changes a turn before it is asked: model, tools, instructions, what is shown. Pure, and not async; what it changes is
   * on record.
   */
  readonly prepareTurn?: ((state: RunState, context: Context) => TurnChange | undefined) | undefined
  /** How a history that grows too long is made shorter in what the model sees. */
  readonly compaction?: CompactionOptions | undefined
}

/** What an agent's code says at each turn, with the context of the run. */
export interface AgentRules<in Context = AnyContext> extends Omit<Rules, 'stopWhen' | 'prepareTurn'> {
  readonly stopWhen?: (state: RunState, context: Context) => boolean
  readonly prepareTurn?: (state: RunState, context: Context) => TurnChange | undefined
}

/** Where a conversation can go: made by `handoff` or `handBack`; an agent alone is one as well. */
export interface HandoffTarget<in Context = AnyContext> {
  readonly to: string
  /** Absent where the conversation goes back to who started the run. */
  readonly agent?: Agent<unknown, Context>
  readonly filter?: (messages: readonly Message[]) => readonly Message[]
  readonly tool: Tool<Context>
}

/** Whom an agent may hand over to. */
export type Handoffs<Context = AnyContext> =
  | readonly (Agent<unknown, Context> | HandoffTarget<Context>)[]
  | (() => readonly (Agent<unknown, Context> | HandoffTarget<Context>)[])

/**
 * An agent: a model, what it is told, and what it may use. Made by `defineAgent`. `Context` is what its runs need of the
 * application, `unknown` for nothing.
 */
export interface Agent<Output = string, in Context = AnyContext> {
  readonly name: string
  readonly description?: string
  readonly instructions: string | ((context: Context) => string)
  readonly model: Model
  /** Its tools, and those that hand over. */
  readonly tools: readonly Tool<Context>[]
  readonly limits: Limits
  readonly parallelToolCalls: boolean
  readonly retry: Partial<RetryPolicy>
  readonly timeouts: ModelTimeouts
  readonly fallbacks: readonly Model[]
  readonly approval?: ApprovalPolicy<Context>
  readonly guardrails: readonly Guardrail<Context>[]
  readonly handoffs: readonly HandoffTarget<Context>[]
  readonly output?: OutputReader<Output>
  /** The model that sums up. */
  readonly summarizer?: Model
  readonly rules: AgentRules<Context>
  /** What the ledger records of it; instructions that are made for a run are not in it. */
  readonly definition: AgentDefinition
}
