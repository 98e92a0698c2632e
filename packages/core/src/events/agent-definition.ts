import { type ModelRef, modelRef, type ProviderState, isSameModel } from './content.ts'
import { type MaxWebSearches, maxWebSearches, type Price, price } from './usage.ts'
import { type GuardedThing, guardedThings } from './event-parts.ts'
import { toCanonicalJson, type JsonObject, omitUndefined } from '../values/json.ts'
import {
  type ModelSettings,
  modelSettings,
  recoveries,
  type Recovery,
  type RefusalPolicy,
  refusalPolicy,
  type ToolChoice,
  type ToolDefinition,
  toolDefinition,
  type ToolEffect,
  toolEffects,
} from './model-request.ts'
import {
  amount,
  count,
  exactly,
  flag,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  type Schema,
  text,
  wordOf,
} from '../values/schema.ts'
import {
  type Background,
  backgrounds,
  type Limits,
  limits,
  type Repeats,
  repeats,
  retry,
  type RetryPolicy,
} from './limits.ts'
import { computeDigest } from '../values/digest.ts'

/** A fallback model, and its price. */
export interface FallbackModel {
  readonly model: ModelRef
  /** The most web searches that its provider runs within one call; absent means none. */
  readonly maxWebSearches?: MaxWebSearches
  readonly price?: Price
}

/** A guardrail as the ledger names it. */
export interface GuardrailDefinition {
  readonly name: string
  readonly on: GuardedThing
  /** Of an input guardrail: it checks in parallel with the model call. */
  readonly beside?: true
}

/** The schema of the answer. */
export interface OutputDefinition {
  /** The JSON Schema (2020-12) that models get: always of an object. */
  readonly schema: JsonObject
  /**
   * Present if the answer is not an object: then models are asked for an object with it as the only field, `answer`.
   */
  readonly wrapped?: true
  /** How often the model may repair its answer. */
  readonly maxRepairs: number
}

/** A handoff tool, and the agent that it hands over to. */
export interface HandoffDefinition {
  readonly tool: string
  readonly to: string
  /** The conversation goes to the caller that started the run. */
  readonly back?: true
}

/** The model that summarises older history, and its instructions. */
export interface SummarizerDefinition extends FallbackModel {
  readonly instructions: string
}

/**
 * Everything that an agent sends to its model, so that the ledger alone shows what the model saw, and how its runs are
 * driven. Code and keys are not part of it. `digest` is SHA-256 over the canonical JSON of the rest, in hex.
 */
export interface AgentDefinition {
  readonly model: ModelRef
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly parallelToolCalls: boolean
  /** The most output tokens of one reply. */
  readonly maxOutputTokens?: number
  /** Settings of its models, unless the run has its own. */
  readonly modelSettings?: ModelSettings
  /** The most web searches that the provider of `model` runs within one call; absent means none. */
  readonly maxWebSearches?: MaxWebSearches
  /** The price of the model; not part of the digest. */
  readonly price?: Price
  /** The fallback models, in order. */
  readonly fallbacks?: readonly FallbackModel[]
  /** Guardrails of input and output; their code is not part of it. */
  readonly guardrails?: readonly GuardrailDefinition[]
  /** The handling of a refusal, if it differs from the vendor's advice. */
  readonly onRefusal?: RefusalPolicy
  readonly output?: OutputDefinition
  readonly handoffs?: readonly HandoffDefinition[]
  readonly summarizer?: SummarizerDefinition
  /** How its runs are driven: limits, waits, and what its tools and adapters are set to. */
  readonly policy?: AgentPolicy
  readonly digest: string
}

/**
 * The text that later turns show the model if `outputStream` changed a reply: as the model wrote it, or as it was shown.
 * Reasoning always stays as written, since the provider accepts it in no other form.
 */
export const nextTurns = ['written', 'shown'] as const
export type NextTurn = (typeof nextTurns)[number]

/** How replies are shown while they are written, as an agent's definition records it: transforms by name, in order. */
export interface OutputPolicy {
  readonly transforms: readonly string[]
  /** Absent means `written`. */
  readonly nextTurn?: NextTurn
}

const tool: Schema<ToolPolicy> = objectOf({
  name: text,
  effect: wordOf(toolEffects),
  recovery: wordOf(recoveries),
  timeoutMs: maybe(amount),
  quietMs: maybe(amount),
  retry: maybe(retry),
  maxResultChars: maybe(amount),
  serial: maybe(text),
  maxConcurrency: maybe(amount),
  repeats: maybe(repeats),
  background: maybe(wordOf(backgrounds)),
  approval: maybe(text),
  origin: maybe(objectOf({ server: text, name: text })),
})

/** Checks which events a run records. */
export const recordingPolicy: Schema<RecordingPolicy> = objectOf({
  textDeltas: maybe(flag),
  toolInputDeltas: maybe(flag),
  toolProgress: maybe(flag),
  reasoning: maybe(flag),
  rawUsage: maybe(flag),
  toolErrors: maybe(flag),
  content: maybe(wordOf(['full', 'digests'])),
})

const outputPolicy: Schema<OutputPolicy> = objectOf({
  transforms: listOf(text),
  nextTurn: maybe(wordOf(nextTurns)),
})

/** Checks a field that an adapter's option sets. */
export const requestAddition: Schema<RequestAddition> = objectOf({
  option: text,
  field: text,
  replaces: maybe(exactly(true)),
  digest: maybe(text),
})

/** Checks how an agent's runs are driven. */
const agentPolicy: Schema<AgentPolicy> = objectOf({
  limits,
  retry: maybe(
    objectOf({
      maxAttempts: maybe(amount),
      baseMs: maybe(amount),
      capMs: maybe(amount),
      maxRetryAfterMs: maybe(amount),
      maxTotalMs: maybe(amount),
    }),
  ),
  timeouts: maybe(objectOf({ idleMs: maybe(amount), totalMs: maybe(amount), prepareMs: maybe(amount) })),
  compaction: maybe(objectOf({ maxContextTokens: amount, keepMessages: amount })),
  tools: maybe(listOf(tool)),
  maxResultChars: maybe(amount),
  approval: maybe(exactly(true)),
  models: maybe(
    listOf(
      objectOf({
        model: modelRef,
        options: maybe(jsonObject),
        additions: maybe(listOf(requestAddition)),
      }),
    ),
  ),
  recording: maybe(recordingPolicy),
  outputStream: maybe(outputPolicy),
})

const pricedModel = {
  model: modelRef,
  price: maybe(price),
  maxWebSearches: maybe(maxWebSearches),
}

/** The model of a run, as a ledger records it. */
export const givenModel: Schema<GivenModel> = objectOf({
  ...pricedModel,
  options: maybe(jsonObject),
  additions: maybe(listOf(requestAddition)),
})

/** An agent as a ledger records it. */
export const agentDefinition: Schema<AgentDefinition> = objectOf({
  model: modelRef,
  instructions: text,
  tools: listOf(toolDefinition),
  parallelToolCalls: flag,
  digest: text,
  maxOutputTokens: maybe(amount),
  price: maybe(price),
  maxWebSearches: maybe(maxWebSearches),
  modelSettings: maybe(modelSettings),
  onRefusal: maybe(refusalPolicy),
  fallbacks: maybe(listOf(objectOf(pricedModel))),
  guardrails: maybe(
    listOf(
      objectOf({
        name: text,
        on: wordOf(guardedThings),
        beside: maybe(exactly(true)),
      }),
    ),
  ),
  output: maybe(objectOf({ schema: jsonObject, wrapped: maybe(exactly(true)), maxRepairs: count })),
  handoffs: maybe(listOf(objectOf({ tool: text, to: text, back: maybe(exactly(true)) }))),
  summarizer: maybe(objectOf({ ...pricedModel, instructions: text })),
  policy: maybe(agentPolicy),
})

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
  /** How failed calls are retried; absent means not at all. */
  readonly retry?: RetryPolicy
  readonly maxResultChars?: number
  /** Shared by tools whose calls run one at a time. */
  readonly serial?: string
  readonly maxConcurrency?: number
  /** Present for a tool that is meant to be called repeatedly, such as a poll. */
  readonly repeats?: Repeats
  readonly background?: Background
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
  /** The most characters of a tool's result that its models read. */
  readonly maxResultChars?: number
  /** The agent has its own approval policy. */
  readonly approval?: true
  readonly models?: readonly PinnedModel[]
  /** Which events its runs record, if not all. */
  readonly recording?: RecordingPolicy
  /** How its replies are shown while they are written, where not as they are. */
  readonly outputStream?: OutputPolicy
}

/**
 * Which of the events that nothing else depends on a run records; by default all of them. Readers do not see events
 * that are not recorded.
 */
export interface RecordingPolicy {
  /**
   * The pieces of a reply's text (`assistant_text_delta`); its message holds the whole text. Without them a reply that breaks off
   * leaves no text, and readers get each text when it is whole; `liveText$` shows it before.
   */
  readonly textDeltas?: boolean | undefined
  /** The pieces of a tool call's input (`tool_input_delta`); the call itself holds its whole input. */
  readonly toolInputDeltas?: boolean | undefined
  /** The progress of a tool (`tool_progress`). */
  readonly toolProgress?: boolean | undefined
  /** The pieces of a model's reasoning (`assistant_reasoning_delta`); its message holds what its provider needs again. */
  readonly reasoning?: boolean | undefined
  /** The provider's own report of usage (`raw` of `usage_updated`), besides the counts derived from it. */
  readonly rawUsage?: boolean | undefined
  /** The stack of an exception that a tool threw (`error` of `tool_result` and `tool_attempt_failed`); its result holds the message. */
  readonly toolErrors?: boolean | undefined
  /**
   * The content kept after a run has ended: all of it (`full`, the default), or only digests and facts (`digests`). Until
   * then a run keeps its content, so that any process can resume it.
   */
  readonly content?: 'full' | 'digests' | undefined
}

/** The names of the parts that may be left out. */
export const recordingParts = [
  'textDeltas',
  'toolInputDeltas',
  'toolProgress',
  'reasoning',
  'rawUsage',
  'toolErrors',
] as const
export type RecordingPart = (typeof recordingParts)[number]

/** A definition under the digest of what it says. What models cost is not part of the digest. */
export function withDigest(definition: Omit<AgentDefinition, 'digest'>): AgentDefinition {
  const { digest: _old, price: _price, fallbacks, summarizer, ...rest } = definition as AgentDefinition
  const body = {
    ...rest,
    ...(fallbacks && { fallbacks: fallbacks.map(({ price: _its, ...fallback }) => fallback) }),
    ...(summarizer && { summarizer: withoutPrice(summarizer) }),
  }
  return { ...definition, digest: computeDigest(body) }
}

function withoutPrice<T extends { readonly price?: unknown }>({
  price: _price,
  ...rest
}: T): Omit<T, 'price'> {
  return rest
}

/** A definition with other instructions; the same one if they are as they were. */
export function withInstructions(definition: AgentDefinition, instructions: string): AgentDefinition {
  return definition.instructions === instructions ? definition : withDigest({ ...definition, instructions })
}

/**
 * The definition of an agent in a run that was given a model: that model in place of the agent's own, which takes over no
 * more where it was a fallback as well. The same definition where nothing changes.
 */
export function applyGivenModel(definition: AgentDefinition, given: GivenModel | undefined): AgentDefinition {
  if (given === undefined) return definition
  const { price: _price, maxWebSearches: _searches, fallbacks = [], policy, ...rest } = definition
  const others = fallbacks.filter(({ model }) => !isSameModel(model, given.model))
  const { fallbacks: _fallbacks, ...withoutFallbacks } = rest as AgentDefinition
  const changed = withDigest({
    ...withoutFallbacks,
    model: given.model,
    ...omitUndefined({ price: given.price, maxWebSearches: given.maxWebSearches || undefined }),
    ...(others.length > 0 && { fallbacks: others }),
    ...(policy && { policy: pickPolicy(policy, definition, given) }),
  })
  return isEqual(changed, definition) ? definition : changed
}

/** The settings of the adapters whose models are still called. */
function pickPolicy(
  { models = [], ...policy }: AgentPolicy,
  { model, fallbacks = [], summarizer }: AgentDefinition,
  given: GivenModel,
): AgentPolicy {
  const kept = [...fallbacks.map((fallback) => fallback.model), ...(summarizer ? [summarizer.model] : [])]
  const isCalled = (ref: ModelRef): boolean =>
    !isSameModel(ref, given.model) &&
    (!isSameModel(ref, model) || kept.some((other) => isSameModel(other, ref)))
  const pinned = [
    ...((given.options ?? given.additions)
      ? [{ model: given.model, ...omitUndefined({ options: given.options, additions: given.additions }) }]
      : []),
    ...models.filter((each) => isCalled(each.model)),
  ]
  return { ...policy, ...(pinned.length > 0 && { models: pinned }) }
}

function isEqual(one: AgentDefinition, other: AgentDefinition): boolean {
  const [{ digest: _one, ...oneBody }, { digest: _other, ...otherBody }] = [one, other]
  return toCanonicalJson(oneBody) === toCanonicalJson(otherBody)
}

/** Labels that an application gives a run, for traces, lists and exports. Models do not see them. */
export interface RunLabels {
  readonly workflowName?: string
  readonly traceId?: string
  readonly groupId?: string
  readonly tags?: readonly string[]
  readonly metadata?: JsonObject
}

/** The options of a run that are code, or say how its agents are driven. */
export const runRuleOptions = [
  'approval',
  'guardrails',
  'handoffFilter',
  'nestHandoffHistory',
  'handoffHistoryMapper',
  'inputFilter',
  'prepareTurn',
  'outputStream',
] as const
export type RunRuleOption = (typeof runRuleOptions)[number]

/** An option of a run that is code, as the ledger names it: by its name, and the digest of its text. */
export interface RunRule {
  readonly option: RunRuleOption
  readonly name: string
  readonly digest: string
}

export const runRule: Schema<RunRule> = objectOf({ option: wordOf(runRuleOptions), name: text, digest: text })

/** The model of a run, which replaces the model of each agent, with the settings of its adapter. */
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
  /** Where the provider keeps the past. */
  readonly providerState?: ProviderState
  /** Which events it records; each setting replaces that of its agents. */
  readonly recording?: RecordingPolicy
  readonly labels?: RunLabels
  /** The latest end of the run, waits included, in milliseconds since 1970 UTC. */
  readonly deadlineAt?: number
  /** The key from which its id is derived, so that the same key starts no second run. */
  readonly idempotencyKey?: string
  /** The limits that a start with such a key gave itself: a retry gives the same. */
  readonly givenLimits?: Limits
  /** Who started it, as the application names its callers. The context is made for them. */
  readonly owner?: string
  /** Code of its own. A resume has to be given it again. */
  readonly rules?: readonly RunRule[]
  /** No traces are made of it, nor of its child runs. */
  readonly tracing?: false
  /** Traces of it, and of its child runs, hold no content. */
  readonly traceContent?: false
}

/** These fields alone, of what has more. */
export function pickGiven(run: { readonly [Name in keyof RunGiven]?: RunGiven[Name] | undefined }): RunGiven {
  const { givenModel, modelSettings, toolChoice, parallelToolCalls, recording } = run
  const { labels, deadlineAt, idempotencyKey, givenLimits, owner, providerState } = run
  const { rules, tracing, traceContent } = run
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
    rules,
    tracing,
    traceContent,
  })
}

/**
 * The context of a run, where a type does not say which: agents and tools that need some context, and those that need
 * none, fit each other then. Only `any` fits both sides of a function's parameter.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- see above; no value of this type is ever used
export type AnyContext = any
