import type { JsonObject } from '@tallystick/core'
import type { OpenAICustomTool, OpenAIWarning } from '../../openai/options/options.ts'
import type { OpenAIChatQuirks } from '../options/quirks.ts'

/** What of a request the model's options decide. */
export interface RequestSettings {
  readonly modelId: string
  readonly provider: string
  readonly quirks: Required<OpenAIChatQuirks>
  readonly maxOutputTokens?: number | undefined
  readonly reasoningEffort?: string | undefined
  readonly verbosity?: string | undefined
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly promptCacheKey?: string | undefined
  readonly serviceTier?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly extraBody?: JsonObject | undefined
  readonly warn: (warning: OpenAIWarning) => void
}
