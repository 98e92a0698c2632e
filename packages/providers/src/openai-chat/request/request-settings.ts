import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAICustomTool, OpenAIWarning } from '../../openai/options/options.ts'
import type { Warn } from '../../shared/options/warning.ts'
import type { WholeQuirks } from '../options/quirks.ts'

/** The settings of a request that come from the options of the model. */
export interface RequestSettings {
  readonly modelId: string
  readonly provider: string
  readonly quirks: WholeQuirks
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
}

/** How one request is rendered. */
export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OpenAIWarning>
}
