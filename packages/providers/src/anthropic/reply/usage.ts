import { isJsonObject } from '@tallystick/core/kit'
import type { Usage } from '@tallystick/core'
import type { Json, JsonObject, ModelSignal } from '@tallystick/core/vocabulary'
import { countAt, itemsOf, objectAt, textAt } from '../../shared/json/json-reading.ts'

/**
 * A later report over an earlier one. Reports are totals of the whole message, so every field that says something
 * replaces; adding them up would count the prompt twice.
 */
export function laterUsage(earlier: JsonObject, later: JsonObject): JsonObject {
  return { ...earlier, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value != null)) }
}

/** Where the vendor ran tools of its own inside the reply, so that the model read several prompts for it. */
export interface Steps {
  /** How many times the model was asked: once, and again after each batch of results. */
  readonly count: number
  /** Tokens of the first prompt, which the message's start says. */
  readonly firstPrompt: number | undefined
}

/**
 * Tokens as we count them: the wire's `input_tokens` leaves cache reads and writes out, `inputTokens` holds them. The
 * message's own numbers leave out what compaction, an advisor or a model that declined took; `iterations` lists those, and
 * all that it lists is billed. `steps`: where the start of the message is known.
 */
export function usageSignal(raw: JsonObject, steps?: Steps): Extract<ModelSignal, { type: 'model_usage' }> {
  const iterations = iterationsOf(raw['iterations'])
  const billed = tokensOf(raw)
  for (const iteration of iterations.map(tokensOf).reduce(sumInto, new Map())) raise(billed, iteration)
  const reasoningTokens = countAt(objectAt(raw, 'output_tokens_details'), 'thinking_tokens')
  const webSearches = countAt(objectAt(raw, 'server_tool_use'), 'web_search_requests')
  const usage: Usage = {
    ...(Object.fromEntries(billed) as Usage),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(webSearches !== undefined && { webSearches }),
  }
  const contextTokens = contextOf(iterations, usage, steps)
  return { type: 'model_usage', usage, ...(contextTokens !== undefined && { contextTokens }), raw }
}

/** Tokens of the prompt that a report counts, cache reads and writes included. */
export function promptTokens(raw: JsonObject): number | undefined {
  return tokensOf(raw).get('inputTokens')
}

type Tokens = Map<keyof Usage, number>

/** What one report, or one iteration of it, counts. */
function tokensOf(raw: JsonObject): Tokens {
  const uncached = countAt(raw, 'input_tokens')
  const written = countAt(raw, 'cache_creation_input_tokens')
  const read = countAt(raw, 'cache_read_input_tokens')
  const counts: readonly (readonly [keyof Usage, number | undefined])[] = [
    ['inputTokens', uncached === undefined ? undefined : uncached + (written ?? 0) + (read ?? 0)],
    ['outputTokens', countAt(raw, 'output_tokens')],
    ['cacheReadTokens', read],
    ['cacheWriteTokens', written],
    ['cacheWriteLongTokens', countAt(objectAt(raw, 'cache_creation'), 'ephemeral_1h_input_tokens')],
  ]
  return new Map(counts.flatMap(([field, count]) => (count === undefined ? [] : [[field, count] as const])))
}

function sumInto(sum: Tokens, more: Tokens): Tokens {
  for (const [field, count] of more) sum.set(field, (sum.get(field) ?? 0) + count)
  return sum
}

/** Nothing that the one of two counts said is lost where the other says less. */
function raise(billed: Tokens, [field, count]: readonly [keyof Usage, number]): void {
  billed.set(field, Math.max(billed.get(field) ?? 0, count))
}

function iterationsOf(value: Json | undefined): readonly JsonObject[] {
  return itemsOf(value).filter(isJsonObject)
}

/**
 * How long the conversation is behind the reply, where that is not what is billed: the last iteration that wrote the
 * message says it. Without iterations it is estimated from the first prompt and the sum of all, as if each step had
 * added as much as the others, which is exact for two steps.
 */
function contextOf(
  iterations: readonly JsonObject[],
  { inputTokens, outputTokens = 0 }: Usage,
  steps: Steps | undefined,
): number | undefined {
  const last = iterations.findLast((iteration) =>
    /^(fallback_)?message$/.test(textAt(iteration, 'type') ?? ''),
  )
  if (last !== undefined) {
    const tokens = tokensOf(last)
    return (tokens.get('inputTokens') ?? 0) + (tokens.get('outputTokens') ?? 0)
  }
  if (steps?.firstPrompt === undefined || inputTokens === undefined || steps.count < 2) return undefined
  const { count, firstPrompt } = steps
  if (inputTokens <= firstPrompt) return undefined
  const lastPrompt = Math.round((2 * inputTokens) / count) - firstPrompt
  return Math.max(firstPrompt, lastPrompt) + outputTokens
}
