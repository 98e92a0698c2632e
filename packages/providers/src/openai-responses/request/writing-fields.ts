import { type ModelRequest } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { type JsonObject, type ModelSettings } from '@tallystick/core/vocabulary'
import { effortName, refusedMessage, samplingFields } from '../../openai/request/sampling.ts'
import type { FallbackChanges, RenderSettings } from './request-settings.ts'

// The vendor refuses to write less.
const outputTokensMin = 16
const ways = { maxStop: 0, seedField: 'none' } as const

/** How much the model may write, how it thinks and writes, and what no option covers. */
export function writingFields(
  { maxOutputTokens = Infinity, modelSettings = {} }: ModelRequest,
  settings: RenderSettings,
  changes: FallbackChanges,
): JsonObject {
  const { refused = [] } = changes
  const { include: _, ...extraBody } = settings.extraBody ?? {}
  const include = includeOf(settings, changes)
  const maxTokens = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity)
  return {
    ...(Number.isFinite(maxTokens) && { max_output_tokens: Math.max(maxTokens, outputTokensMin) }),
    ...optionFields(settings),
    ...extraBody,
    ...reasoningFields(modelSettings, settings, refused),
    ...(include.length > 0 && { include }),
    ...samplingFields(modelSettings, ways, { ...settings, refused }),
  }
}

/** How much the model is to reason, over what the options and the body say of that. */
function reasoningFields(
  { reasoningEffort: effort }: ModelSettings,
  { reasoning, extraBody, warn }: RenderSettings,
  refused: readonly string[],
): JsonObject {
  if (effort === undefined) return {}
  if (refused.includes(effortName)) {
    warn({ what: 'model_settings', message: refusedMessage(effortName) })
    return {}
  }
  const given = extraBody?.['reasoning'] ?? reasoning
  return { reasoning: { ...(given as JsonObject | undefined), effort } }
}

/** Fields that the options of the model say word for word. */
function optionFields(settings: RenderSettings): JsonObject {
  return omitUndefined({
    reasoning: settings.reasoning,
    prompt_cache_key: settings.promptCacheKey,
    service_tier: settings.serviceTier,
    metadata: settings.metadata,
  })
}

/** What the service is to add to its reply: what the adapter needs, beside what the options ask for. */
function includeOf(
  { include = [], extraBody }: RenderSettings,
  { noEncryption }: FallbackChanges,
): readonly string[] {
  const more = extraBody?.['include']
  const asked = [...include, ...(Array.isArray(more) ? (more as readonly string[]) : [])]
  const wanted = ['reasoning.encrypted_content', ...asked]
  const all = new Set(wanted.filter((one) => !noEncryption || one !== 'reasoning.encrypted_content'))
  return [...all]
}
