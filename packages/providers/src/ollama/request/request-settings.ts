import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warn } from '../../shared/options/warning.ts'
import type { WireThinking } from '../client/wire.ts'
import type { OllamaWarning } from '../options/options.ts'

/** The settings of a request that come from the options of the model. */
export interface RequestSettings {
  readonly modelId: string
  readonly contextTokens: number
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: WireThinking | undefined
  readonly keepAlive?: string | number | undefined
  /** The vendor's own settings of a model, by its own names. They win over those that an option makes. */
  readonly parameters?: JsonObject | undefined
  /** Fields of the body that no option covers. They win. */
  readonly extraBody?: JsonObject | undefined
}

/** How one request is rendered. */
export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OllamaWarning>
}
