import type { AgentDefinition, AnyContext, RecordingPolicy } from '../events/agent-definition.ts'
import type { Message } from '../events/content.ts'
import {
  backgrounds,
  forEveryLimit,
  type GivenLimits,
  type GivenRetryPolicy,
  leastResultChars,
  type LimitName,
  limitNames,
  type Limits,
  onLimits,
  type Repeats,
  type RetryPolicy,
  retry as wholeRetry,
} from '../events/limits.ts'
import { type ModelSettings, recoveries, type RefusalPolicy, toolEffects } from '../events/model-request.ts'
import { someSettings } from '../events/model-settings-check.ts'
import type { Rules, TurnChange, TurnRequest } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import type { Model, ModelTimeouts } from '../models/model.ts'
import { type OutputStreamOptions, someOutputStream } from '../models/output.ts'
import type { ApprovalPolicy } from '../tools/check-calls.ts'
import { type Guardrail, guardrail, requireGuardrailNames } from '../tools/guardrails.ts'
import type { OutputReader, OutputSchema } from '../tools/tool-schema.ts'
import type { Tool, ToolSource } from '../tools/tool.ts'
import { ConfigurationError } from '../values/errors.ts'
import { type JsonObject, omitUndefined } from '../values/json.ts'
import {
  anyFunction,
  anyText,
  placeFault,
  fields,
  filledText,
  functionOr,
  listOf,
  longTime,
  maybe,
  milliseconds,
  numberFrom,
  oneOf,
  textOr,
  type Schema,
  plainFunction,
  recordOf,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../values/option.ts'
import { jsonObject } from '../values/schema.ts'

/** How a history that grows too long is shortened for the model. The ledger keeps all of it. */
export interface CompactionOptions {
  /** The runtime shortens the history before a call whose input it estimates at more tokens than this. */
  readonly maxContextTokens: number
  /** How many of the newest messages stay as they are. */
  readonly keepMessages: number
  /**
   * Replaces the older messages: the summary of a model, or the text that a pure function returns. Without it they
   * are left out.
   */
  readonly summarize?: (Model | ((messages: readonly Message[]) => string)) | undefined
  /** Instructions for the model that sums up; `summaryInstructions` if not given. */
  readonly instructions?: string | undefined
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
  /** Says when to use it, to the models of other agents. */
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
  /** Lets the model ask for several tools in one reply. Default: `true`. */
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
  /** The reaction to a refusal; by default, the one that the model's vendor advises. */
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
   * Changes a turn before its model call: sees the whole request, and returns the parts that it changes. It may be async. It
   * must have no side effects, since it is called again if input arrives before it returns, and after a crash. Its changes
   * are on record.
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

/** The decisions of an agent's code at each turn, with the context of the run. */
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
  /** The agent as the ledger records it, except instructions made for one run. */
  readonly definition: AgentDefinition
}

/**
 * True for a result of `defineAgent`. Does not look at its tools and its definition: agents may name each other in a circle.
 */
function isDefinedAgent(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'definition' in value && 'handoffs' in value
}

export const definedAgent: Schema = valueThat('an agent made with defineAgent', isDefinedAgent)

/** A model that can be called, and named in a ledger. */
export const calledModel: Schema = (value) => {
  const what = findModelFault(value)
  return what === undefined ? undefined : { path: '', what }
}

const aModel = "such as anthropic('…') of @tallystick/providers/anthropic"

function findModelFault(value: unknown): string | undefined {
  if (typeof value === 'string') return `is a text; give a model, ${aModel}`
  const { stream, provider, api, modelId, maxWebSearches, doStream } = Object(value) as Partial<Model> & {
    readonly doStream?: unknown
  }
  if (typeof stream === 'function') {
    if (![provider, api, modelId].every((name) => typeof name === 'string'))
      return 'does not say its provider, api and modelId, so no ledger could say who answered'
    if (maxWebSearches === undefined || maxWebSearches === 'unbounded') return undefined
    const isCount = Number.isSafeInteger(maxWebSearches) && maxWebSearches >= 0
    return isCount ? undefined : "has a maxWebSearches that is neither a whole number from 0 nor 'unbounded'"
  }
  if (typeof doStream === 'function') {
    return 'is a model of the AI SDK; wrap it with fromAiSdk(…) of @tallystick/providers/ai-sdk'
  }
  if (typeof value === 'function')
    return `is a function; call it, and give the model that it makes, ${aModel}`
  return `is not a model; give one, ${aModel}`
}

/** A tool that can be offered, run and resumed. */
export const offeredTool: Schema = (value) => {
  const { run, check, name, execute } = Object(value) as Partial<Tool> & { readonly execute?: unknown }
  if (typeof run !== 'function' || typeof check !== 'function') {
    const foreign = typeof execute === 'function' ? ', with effect, input and execute' : ''
    return { path: '', what: `is not a tool; make it with defineTool of @tallystick/tools${foreign}` }
  }
  const what = findToolFault(value as Tool)
  if (what === undefined) return undefined
  return { path: typeof name === 'string' && name !== '' ? ` (${name})` : '', what }
}

function findToolFault(tool: Tool): string | undefined {
  const { name, description, inputSchema, recovery } = tool
  if (typeof name !== 'string' || name === '') return 'has no name, so no model could ask for it'
  if (typeof description !== 'string') return "has no description; say when to use it, or give ''"
  if (jsonObject(inputSchema)) return 'has no input schema; give a JSON Schema of type object'
  for (const [field, schema] of Object.entries(toolFields)) {
    const fault = placeFault(field, schema(tool[field as keyof typeof toolFields]))
    if (fault) return `cannot be used: its ${fault.path} ${fault.what}`
  }
  if (tool.retry !== undefined && wholeRetry(tool.retry))
    return 'has a retry policy that is not whole: give maxAttempts, baseMs, capMs and maxRetryAfterMs'
  const beside = tool.background === undefined ? undefined : findBackgroundFault(tool)
  if (beside) return beside
  return recovery === 'reconcile' && typeof tool.reconcile !== 'function'
    ? 'says recovery reconcile, but has no function for it'
    : undefined
}

/** What work in the background cannot do: nothing is asked about it, and it is not tried again, while the run goes on. */
function findBackgroundFault({ child, handoff, recovery, retry }: Tool): string | undefined {
  if (child !== undefined) return 'is an agent, whose work cannot go on in the background'
  if (handoff !== undefined) return 'hands the conversation over, which cannot be done in the background'
  if (retry !== undefined)
    return 'has retries, which work in the background has not; try again within the tool'
  return recovery === 'ask' || recovery === 'reconcile'
    ? `says recovery ${recovery}, and work in the background that is in doubt can only rerun, or report it`
    : undefined
}

/** How a tool is meant to be asked again. */
export const someRepeats: Schema = textOr(
  ['allowed'],
  fields<Exclude<Repeats, 'allowed'>>({ minIntervalMs: milliseconds }, { intervalMs: 'minIntervalMs' }),
)

const toolFields = {
  effect: oneOf(toolEffects),
  recovery: oneOf(recoveries),
  maxResultChars: maybe(numberFrom(leastResultChars, { whole: true })),
  serial: maybe(filledText),
  maxConcurrency: maybe(numberFrom(1, { whole: true })),
  repeats: maybe(someRepeats),
  background: maybe(oneOf(backgrounds)),
} as const

const count = numberFrom(0, { whole: true })

/** Checks of each limit that can be met: turns and calls are whole, dollars and milliseconds may be fractions. */
export const limitChecks: { readonly [L in LimitName]: Schema } = {
  ...forEveryLimit(count),
  maxCostUsd: numberFrom(0),
  maxDurationMs: numberFrom(0),
}

/** Maxima of a run. */
export const someLimits: Schema = fields<GivenLimits>(
  {
    ...forEveryLimit(maybe(count)),
    maxCostUsd: maybe(limitChecks.maxCostUsd),
    maxDurationMs: maybe(limitChecks.maxDurationMs),
    maxCallsByTool: maybe(recordOf(count)),
    maxConcurrency: maybe(numberFrom(1, { whole: true })),
    maxApprovalMs: maybe(longTime),
    graceMs: maybe(numberFrom(0)),
    onLimit: maybe(oneOf(onLimits)),
  },
  {
    maxSteps: 'maxTurns',
    budget: 'maxCostUsd',
    maxBudgetUsd: 'maxCostUsd',
    timeoutMs: 'maxDurationMs',
    maxTokens: 'maxTotalTokens',
    maxInputTokens: 'maxTotalInputTokens',
    maxOutputTokens: 'maxTotalOutputTokens',
  },
)

/** A limit that can be raised. */
export const limitName: Schema = oneOf(limitNames)

/** Waits and attempts of a model call: a retry without end would look like a run that hangs. */
export const retryPolicy: Schema = fields<GivenRetryPolicy>(
  {
    maxAttempts: maybe(numberFrom(1, { whole: true })),
    baseMs: maybe(numberFrom(0)),
    capMs: maybe(numberFrom(0)),
    maxRetryAfterMs: maybe(numberFrom(0)),
    maxTotalMs: maybe(numberFrom(0)),
  },
  { maxRetries: 'maxAttempts' },
)

/** Which events a run records. */
export const someRecording: Schema = fields<RecordingPolicy>({
  textDeltas: maybe(trueOrFalse),
  toolInputDeltas: maybe(trueOrFalse),
  toolProgress: maybe(trueOrFalse),
  reasoning: maybe(trueOrFalse),
  rawUsage: maybe(trueOrFalse),
  toolErrors: maybe(trueOrFalse),
  content: maybe(oneOf(['full', 'digests'])),
})

/** Options as they are recorded, without those that are undefined; `undefined` if nothing is left. */
export function omitIfEmpty<T extends object>(
  options: T | undefined,
): { readonly [Name in keyof T]: Exclude<T[Name], undefined> } | undefined {
  const given = omitUndefined({ ...options })
  return Object.keys(given).length > 0 ? (given as never) : undefined
}

const compaction = fields<CompactionOptions>({
  maxContextTokens: numberFrom(0),
  keepMessages: numberFrom(0, { whole: true }),
  summarize: maybe(functionOr(calledModel)),
  instructions: maybe(anyText),
})

const timeouts = fields<ModelTimeouts>({
  idleMs: maybe(numberFrom(1)),
  totalMs: maybe(numberFrom(1)),
  prepareMs: maybe(milliseconds),
})

const refusalPolicy = fields<RefusalPolicy>({
  history: maybe(oneOf(['keep', 'leave_out'])),
  fallback: maybe(trueOrFalse),
})

const handoffTarget = valueThat(
  'an agent made with defineAgent, handoff(agent) or handBack(name)',
  (value) =>
    isDefinedAgent(value) ||
    (typeof value === 'object' && value !== null && 'tool' in value && 'to' in value),
)

/** Whom an agent may hand over to, where it is a list. */
export const handoffList: Schema = listOf(handoffTarget)

const schema = valueThat(
  'a schema: z.object({ … }), another Standard Schema, or a JSON Schema',
  (value) => (typeof value === 'object' || typeof value === 'function') && value !== null,
)

function hasTools(value: unknown): boolean {
  const { tools, offered } = Object(value) as { readonly tools?: unknown; readonly offered?: unknown }
  return Array.isArray(tools) && (offered === undefined || typeof offered === 'function')
}

const agentOptions = fields<AgentOptions<unknown>>(
  {
    name: filledText,
    description: maybe(anyText),
    instructions: functionOr(anyText),
    model: calledModel,
    tools: maybe(functionOr(listOf(offeredTool))),
    toolSource: maybe(valueThat('an object whose tools are a list', hasTools)),
    limits: maybe(someLimits),
    parallelToolCalls: maybe(trueOrFalse),
    maxOutputTokens: maybe(numberFrom(1, { whole: true })),
    modelSettings: maybe(someSettings),
    retry: maybe(retryPolicy),
    timeouts: maybe(timeouts),
    fallbacks: maybe(listOf(calledModel)),
    onRefusal: maybe(refusalPolicy),
    maxResultChars: maybe(numberFrom(leastResultChars, { whole: true })),
    approval: maybe(anyFunction),
    guardrails: maybe(listOf(guardrail)),
    handoffs: maybe(functionOr(handoffList)),
    output: maybe(schema),
    maxOutputRepairs: maybe(numberFrom(0, { whole: true })),
    stopWhen: maybe(plainFunction),
    prepareTurn: maybe(anyFunction),
    compaction: maybe(compaction),
    recording: maybe(someRecording),
    outputStream: maybe(someOutputStream),
  },
  {
    system: 'instructions',
    systemPrompt: 'instructions',
    prompt: 'instructions',
    schema: 'output',
    responseFormat: 'output',
    output_schema: 'output',
    maxTurns: 'limits.maxTurns',
    maxSteps: 'limits.maxTurns',
    temperature: 'modelSettings.temperature',
    topP: 'modelSettings.topP',
    seed: 'modelSettings.seed',
    stop: 'modelSettings.stop',
    providerOptions: 'modelSettings.providerOptions',
    maxRetries: 'retry.maxAttempts',
    agents: 'handoffs',
    subagents: 'handoffs',
    callModelInputFilter: 'prepareTurn',
    hooks: 'prepareTurn',
    experimental_transform: 'outputStream',
    transforms: 'outputStream.transforms',
  },
)

/** Refuses options that no agent could be made of. */
export function requireAgentOptions(options: AgentOptions<unknown>): void {
  const { name } = Object(options) as { readonly name?: unknown }
  requireOptions(
    typeof name === 'string' && name ? `defineAgent (${name})` : 'defineAgent',
    agentOptions,
    options,
  )
  const { tools = [], toolSource } = options
  if (typeof tools !== 'function') requireTools(name as string, tools)
  else if (toolSource) {
    throw new ConfigurationError(
      `defineAgent (${options.name}): tools is a function, and toolSource is given: both decide which tools a turn offers. Give tools as a list, or let the function also return the tools of the source.`,
    )
  }
  requireGuardrailNames(options.name, options.guardrails ?? [])
}

/** Refuses tools that a model could not tell from each other. */
export function requireTools(agent: string, tools: readonly Tool[]): void {
  const names = new Set<string>()
  const twice = tools.find(({ name }) => {
    const isKnown = names.has(name)
    names.add(name)
    return isKnown
  })
  if (twice === undefined) return
  throw new ConfigurationError(
    `Agent ${agent} has two tools named ${twice.name}, and a model could not tell them apart. Rename one.`,
  )
}
