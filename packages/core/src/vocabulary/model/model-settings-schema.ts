import * as z from 'zod'
import { reasoningEfforts, type ModelSettings, type ProviderOptions } from './model-settings.ts'
import { amount, jsonObject, objectOf, optional, ordinal, text } from '../values/schema.ts'

/** Settings of a model, as events hold them. */
export const modelSettings: z.ZodType<ModelSettings> = objectOf<ModelSettings>({
  temperature: optional(amount),
  topP: optional(amount),
  seed: optional(z.int()),
  maxOutputTokens: optional(ordinal),
  reasoningEffort: optional(z.enum(reasoningEfforts)),
  stop: optional(z.array(text)),
  providerOptions: optional(z.record(text, jsonObject) as z.ZodType<ProviderOptions>),
})
