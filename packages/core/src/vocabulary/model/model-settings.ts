import { getOwn } from '../values/get-own.ts'
import type { JsonObject } from '../values/json.ts'
import { omitUndefined } from '../values/omit-undefined.ts'

/**
 * How a model writes its replies. The model decides about settings that are left out. An adapter maps each setting to
 * its wire, and leaves out those that the wire cannot express, with a warning on record.
 */
export interface ModelSettings {
  /** The randomness of the choice of words: 0 is the least, and most models take up to 1 or 2. */
  readonly temperature?: number | undefined
  /** Words are chosen out of the likeliest ones that together have this probability, from 0 to 1. */
  readonly topP?: number | undefined
  /** Texts before which a reply ends. */
  readonly stop?: readonly string[] | undefined
  /** A whole number: the same seed gives the same words, as far as the vendor supports that. */
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
export function mergedSettings(
  agent: ModelSettings | undefined,
  run: ModelSettings | undefined,
): ModelSettings | undefined {
  if (agent === undefined || run === undefined) return run ?? agent
  const providerOptions = mergedOptions(agent.providerOptions, run.providerOptions)
  return { ...agent, ...omitUndefined({ ...run }), ...omitUndefined({ providerOptions }) }
}

function mergedOptions(
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
