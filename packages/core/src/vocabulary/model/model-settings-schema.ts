import {
  amount,
  jsonObject,
  listOf,
  objectOf,
  optional,
  ordinal,
  recordOf,
  type Schema,
  text,
  whole,
  wordOf,
} from '../values/schema.ts'
import { reasoningEfforts, type ModelSettings, type ProviderOptions } from './model-settings.ts'

/** Settings of a model, as events hold them. */
export const modelSettings: Schema<ModelSettings> = objectOf<ModelSettings>({
  temperature: optional(amount),
  topP: optional(amount),
  seed: optional(whole),
  maxOutputTokens: optional(ordinal),
  reasoningEffort: optional(wordOf(reasoningEfforts)),
  stop: optional(listOf(text)),
  providerOptions: optional(recordOf(jsonObject) as Schema<ProviderOptions>),
})
