import type { Message, ProviderState } from './content.ts'
import { getOwn, type JsonObject, omitUndefined } from '../values/json.ts'
import {
  amount,
  exactly,
  flag,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  numberFrom,
  ordinal,
  recordOf,
  type Schema,
  text,
  variantOf,
  wordOf,
} from '../values/schema.ts'

/** The request of one model call. Folding the ledger up to `model_call_started` gives exactly the same request. */
export interface ModelRequest {
  readonly instructions: string
  /** The history. Every tool call in it has its result, in the next message. Never mutated: cache by identity. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  readonly maxOutputTokens?: number
  /** How the model writes. An adapter leaves out settings that its wire cannot express, with a warning. */
  readonly modelSettings?: ModelSettings
  /**
   * The JSON Schema (2020-12) of the answer. An adapter lets the vendor enforce it. If the vendor cannot, or not this
   * schema, the adapter writes the schema into the instructions, and says so in the warnings of `model_started`: the
   * model always reads the schema. The runtime checks the answer in either case.
   */
  readonly outputSchema?: JsonObject
  /**
   * Where the provider keeps the conversation before these messages, which do not repeat it. Only for a model with
   * `keepsState`.
   */
  readonly providerState?: ProviderState
}

/**
 * How a model writes its replies. The model decides about settings that are left out. An adapter maps each setting to
 * its wire, and leaves out those that the wire cannot express, with a warning on record.
 */
export interface ModelSettings {
  /** Randomness: 0 is the least; most models take up to 1 or 2. */
  readonly temperature?: number | undefined
  /** Words are chosen from the likeliest ones that together have this probability, from 0 to 1. */
  readonly topP?: number | undefined
  /** Texts before which a reply ends. */
  readonly stop?: readonly string[] | undefined
  /** A whole number: the same seed gives the same words, if the vendor supports that. */
  readonly seed?: number | undefined
  /** The most output tokens of one reply; replaces `maxOutputTokens` of the agent. */
  readonly maxOutputTokens?: number | undefined
  /** How much the model reasons. Which of these values a model takes depends on its vendor. */
  readonly reasoningEffort?: ReasoningEffort | undefined
  /**
   * Options of single vendors, by the `provider` of their models, in the vendor's form, such as `{ openai: {
   * service_tier: 'flex' } }`. Models of other providers, such as a fallback, do not get them. They are recorded with
   * the run, so never put keys here.
   */
  readonly providerOptions?: ProviderOptions | undefined
}

/** How much a model reasons, from not at all to as much as it can. */
export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type ReasoningEffort = (typeof reasoningEfforts)[number]

/** Options by the name of the provider. */
export interface ProviderOptions {
  readonly [provider: string]: JsonObject
}

/** The settings of a run over those of its agent: each setting wins alone, and so does each option of a provider. */
export function mergeSettings(
  agent: ModelSettings | undefined,
  run: ModelSettings | undefined,
): ModelSettings | undefined {
  if (agent === undefined || run === undefined) return run ?? agent
  const providerOptions = mergeOptions(agent.providerOptions, run.providerOptions)
  return { ...agent, ...omitUndefined({ ...run }), ...omitUndefined({ providerOptions }) }
}

function mergeOptions(
  agent: ProviderOptions | undefined,
  run: ProviderOptions | undefined,
): ProviderOptions | undefined {
  if (agent === undefined || run === undefined) return run ?? agent
  const own = Object.entries(run).map(([provider, options]): [string, JsonObject] => [
    provider,
    { ...getOwn(agent, provider), ...options },
  ])
  return { ...agent, ...Object.fromEntries(own) }
}

/** Settings of a model, as events hold them. */
export const modelSettings: Schema<ModelSettings> = objectOf({
  temperature: maybe(amount),
  topP: maybe(amount),
  seed: maybe(numberFrom(-Infinity, { whole: true })),
  maxOutputTokens: maybe(ordinal),
  reasoningEffort: maybe(wordOf(reasoningEfforts)),
  stop: maybe(listOf(text)),
  providerOptions: maybe(recordOf(jsonObject) as Schema<ProviderOptions>),
})

/** A vendor's reason for a reply that its model refused to write, or to continue. */
export interface ModelRefusal {
  /** Why, in the vendor's words. */
  readonly reason?: string
  /** The vendor asks to leave the refused turn out of later requests, which would be refused too. */
  readonly leaveOut?: true
  /** The vendor advises trying another model. */
  readonly askAnother?: true
}

/** The handling of a refusal. Default of each field: as the vendor advises. */
export interface RefusalPolicy {
  /**
   * The refused turn in later runs of the session: `keep` shows it, `leave_out` records its removal, after which only the
   * names and outcomes of its tools remain.
   */
  readonly history?: 'keep' | 'leave_out' | undefined
  /** True if the agent's next fallback, if any, is tried instead. */
  readonly fallback?: boolean | undefined
}

const isTrue = exactly(true)

/** A vendor's report of a refusal, as events and signals hold it. */
export const refusal: Schema<ModelRefusal> = objectOf({
  reason: maybe(text),
  leaveOut: maybe(isTrue),
  askAnother: maybe(isTrue),
})

/** An agent's handling of refusals, as its definition holds it. */
export const refusalPolicy: Schema<RefusalPolicy> = objectOf({
  history: maybe(wordOf(['keep', 'leave_out'])),
  fallback: maybe(flag),
})

/** Effects of a tool: a `write` changes something outside. Reads may run at the same time, writes run one by one. */
export const toolEffects = ['read', 'write'] as const
export type ToolEffect = (typeof toolEffects)[number]

/**
 * How a resume treats a call in doubt:
 * - `rerun`: start it again, with the same idempotency key
 * - `reconcile`: ask the outside world whether it happened
 * - `ask`: let a person decide
 * - `report`: tell the model `interrupted`, and start nothing
 */
export const recoveries = ['rerun', 'reconcile', 'ask', 'report'] as const
export type Recovery = (typeof recoveries)[number]

/** A tool as a model sees it. `inputSchema` is a JSON Schema (2020-12) of type object. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
}

export const toolDefinition: Schema<ToolDefinition> = objectOf({
  name: text,
  description: text,
  inputSchema: jsonObject,
})

/** The name of the tool that reads the rest of a result which was too long to be shown. */
export const readResultName = 'read_result'

/** The model may call tools (`auto`), has to call one (`any`, or `tool` by its name), or may call none. */
export type ToolChoice =
  | { readonly type: 'auto' }
  | { readonly type: 'any' }
  | { readonly type: 'none' }
  | { readonly type: 'tool'; readonly name: string }
export const toolChoice: Schema<ToolChoice> = variantOf('type', {
  auto: {},
  any: {},
  none: {},
  tool: { name: text },
})
