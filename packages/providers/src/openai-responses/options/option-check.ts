import { ConfigurationError } from '@tallystick/core'
import {
  anyText,
  bothChecks,
  checkBothOptions,
  fields,
  filledText,
  listOf,
  maybe,
  oneOf,
  trueOrFalse,
} from '../../openai/options/option-check.ts'
import { objects, otherNames } from '../../shared/options/model-options.ts'
import type { OpenAIOptions } from './options.ts'

/** What `openai()` takes beside the model id. */
const openaiOptions = fields<OpenAIOptions>(
  {
    ...bothChecks,
    reasoning: maybe(
      fields<NonNullable<OpenAIOptions['reasoning']>>({
        effort: maybe(anyText),
        summary: maybe(oneOf(['auto', 'concise', 'detailed'])),
      }),
    ),
    include: maybe(listOf(filledText)),
    providerTools: maybe(objects),
    approvalTool: maybe(filledText),
    background: maybe(trueOrFalse),
    nativeTools: maybe(
      fields<NonNullable<OpenAIOptions['nativeTools']>>({
        shell: maybe(filledText),
        apply_patch: maybe(filledText),
      }),
    ),
    chain: maybe(trueOrFalse),
    conversation: maybe(filledText),
  },
  { ...otherNames, reasoningEffort: 'reasoning.effort' },
)

/** Throws `ConfigurationError` for what could not work in any call. */
export function checkResponsesOptions(modelId: string, options: OpenAIOptions): void {
  checkBothOptions({ maker: 'openai', check: openaiOptions, modelId, options })
  checkState(options)
}

function checkState({ chain, conversation }: OpenAIOptions): void {
  if (conversation === undefined || !chain) return
  throw new ConfigurationError(
    'openai() got a conversation together with chain; the service continues from one of the two. Pass the id of a conversation, or chain.',
  )
}
