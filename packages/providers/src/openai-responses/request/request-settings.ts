import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAICustomTool, OpenAIWarning } from '../../openai/options/options.ts'
import type { NativeKind } from '../client/wire.ts'
import type { Warn } from '../../shared/options/warning.ts'

/** The settings of a request that come from the options of the model. */
export interface RequestSettings {
  readonly modelId: string
  readonly provider: string
  readonly maxOutputTokens?: number | undefined
  /** Where the conversation is kept: nowhere, after each response, or in a conversation that has an id. */
  readonly state: 'none' | 'responses' | { readonly conversation: string } | { readonly after: string }
  readonly reasoning?: JsonObject | undefined
  readonly include?: readonly string[] | undefined
  readonly serviceTier?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly verbosity?: string | undefined
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly providerTools: readonly JsonObject[]
  readonly approvalTool: string
  readonly background: boolean
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  readonly promptCacheKey?: string | undefined
  readonly extraBody?: JsonObject | undefined
}

/** How one request is rendered. */
export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OpenAIWarning>
}

/** How a request is to differ from what the settings say, after one was refused. */
export interface FallbackChanges {
  /** The service has lost what it kept: everything is sent. */
  readonly stateLost?: boolean
  /** The model knows no encrypted reasoning: it is not asked for. */
  readonly noEncryption?: boolean
  /** Fields of how to write that the model takes none of. */
  readonly refused?: readonly string[]
}
