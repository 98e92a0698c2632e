import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warn } from '../../shared/options/warning.ts'
import type { WireThinking } from '../client/wire.ts'
import type { AnthropicMcpServer, AnthropicWarning } from '../options/options.ts'
import type { CachePolicy } from './prompt-cache.ts'

/** The settings of a request that come from the options of the model. */
export interface RequestSettings {
  readonly modelId: string
  readonly maxOutputTokens: number
  readonly promptCache: CachePolicy
  /** Whether the API version that is spoken takes `temperature` and `top_p`. */
  readonly takesSampling?: boolean | undefined
  readonly thinking?: WireThinking | undefined
  /** Whether the model binds its thinking, which is always on, to what stands before it. */
  readonly bindsThinking?: boolean | undefined
  /** Says nothing of what becomes of earlier thinking that belongs to another beginning. */
  readonly keepsBinding?: boolean | undefined
  readonly effort?: string | undefined
  readonly citations?: boolean | undefined
  readonly strictTools?: boolean | undefined
  readonly eagerToolInputs?: boolean | undefined
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /** Tools that the vendor runs itself, in its own words. */
  readonly providerTools?: readonly JsonObject[] | undefined
  readonly mcpServers?: readonly AnthropicMcpServer[] | undefined
  readonly contextEdits?: readonly JsonObject[] | undefined
  readonly betas?: readonly string[] | undefined
  /** Fields of the body that no option covers. They win. */
  readonly extraBody?: JsonObject | undefined
}

/** How one request is rendered. */
export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<AnthropicWarning>
}
