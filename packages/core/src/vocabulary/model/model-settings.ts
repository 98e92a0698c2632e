import type { JsonObject } from '../values/json.ts'
import { omitUndefined } from '../values/omit-undefined.ts'

/**
 * How a model writes its replies. What is left out is the model's own choice. An adapter maps each setting to its wire; one
 * that the wire cannot take is left out, with a warning on record.
 */
export interface ModelSettings {
  /** How much chance there is in the choice of words: 0 is the least, and most models take up to 1 or 2. */
  readonly temperature?: number | undefined
  /** Words are chosen out of the likeliest ones that together have this probability, from 0 to 1. */
  readonly topP?: number | undefined
  /** Texts before which a reply ends. */
  readonly stop?: readonly string[] | undefined
  /** A whole number: the same one gives the same words, as far as the vendor can hold to that. */
  readonly seed?: number | undefined
  /** Output tokens of one reply at most; over `maxOutputTokens` of the agent. */
  readonly maxOutputTokens?: number | undefined
  /** How much a model that reasons is to reason. Which of the words a model takes is its vendor's own. */
  readonly reasoningEffort?: ReasoningEffort | undefined
  /**
   * What only one vendor knows, by the `provider` of its models, in the vendor's own words, such as
   * `{ openai: { service_tier: 'flex' } }`. Models of other providers, a fallback say, are not told. It is recorded with
   * the run: no place for keys.
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
    { ...(Object.hasOwn(agent, provider) && agent[provider]), ...options },
  ])
  return { ...agent, ...Object.fromEntries(own) }
}
