import { ConfigurationError } from '@tallystick/core'
import { option, type OptionalCheck, type OptionCheck } from '@tallystick/core/kit'
import { apiKey, commonChecks, requireModelOptions } from '../../shared/options/model-options.ts'
import type { OpenAICommonOptions, OpenAICustomTool } from './options.ts'

export const {
  anyObject,
  anyText,
  fields,
  filledText,
  listOf,
  maybe,
  oneOf,
  recordOf,
  trueOrFalse,
  valueThat,
} = option

const customTool = fields<OpenAICustomTool>({ field: filledText, format: maybe(anyObject) })

/** Checks of the options that both wires of OpenAI take. */
export const bothChecks: {
  readonly [name in keyof OpenAICommonOptions | 'client' | 'verbosity']: OptionalCheck
} = {
  ...commonChecks,
  apiKey: maybe(apiKey),
  client: maybe(anyObject),
  provider: maybe(filledText),
  strictTools: maybe(trueOrFalse),
  customTools: maybe(recordOf(customTool)),
  toolFields: maybe(recordOf(anyObject)),
  promptCacheKey: maybe(anyText),
  serviceTier: maybe(filledText),
  metadata: maybe(recordOf(anyText)),
  verbosity: maybe(oneOf(['low', 'medium', 'high'])),
}

/** What was called, and with what. */
export interface MakerCall {
  readonly maker: 'openai' | 'openaiChat'
  readonly check: OptionCheck
  readonly modelId: string
  readonly options: OpenAICommonOptions & { readonly client?: unknown }
}

/** Throws `ConfigurationError` for what could not work in any call. */
export function checkBothOptions({ maker, check, modelId, options }: MakerCall): void {
  requireModelOptions(maker, check, { modelId, options })
  if (options.client && (options.apiKey ?? options.baseURL ?? options.fetch) !== undefined) {
    throw new ConfigurationError(
      `${maker}() got a client together with apiKey, baseURL or fetch, which the client would ignore. Pass one or the other.`,
    )
  }
}
