import { option, type OptionCheck } from '@tallystick/core'
import type { OpenAIChatOptions } from '../../openai-chat/model.ts'
import type { OpenAIChatQuirks } from '../../openai-chat/options/quirks.ts'
import type { OpenAIOptions } from '../../openai-responses/model.ts'
import { apiKey, commonChecks, objects, otherNames } from '../../shared/options/model-options.ts'
import type { OpenAICustomTool } from './options.ts'

const { anyObject, anyText, fields, filledText, listOf, maybe, oneOf, recordOf, trueOrFalse, valueThat } =
  option

const customTool = fields<OpenAICustomTool>({ field: filledText, format: maybe(anyObject) })

const both = {
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
} as const

/** What `openai()` takes beside the model id. */
export const openaiOptions: OptionCheck = fields<OpenAIOptions>(
  {
    ...both,
    reasoning: maybe(
      fields<NonNullable<OpenAIOptions['reasoning']>>({
        effort: maybe(anyText),
        summary: maybe(oneOf(['auto', 'concise', 'detailed'])),
      }),
    ),
    include: maybe(listOf(filledText)),
    providerTools: maybe(objects),
    approvalTool: maybe(filledText),
    chain: maybe(trueOrFalse),
    conversation: maybe(filledText),
  },
  { ...otherNames, reasoningEffort: 'reasoning.effort' },
)

const quirks = fields<OpenAIChatQuirks>({
  systemRole: maybe(oneOf(['system', 'developer'])),
  maxTokensField: maybe(oneOf(['max_completion_tokens', 'max_tokens'])),
  streamUsage: maybe(trueOrFalse),
  parallelToolCalls: maybe(trueOrFalse),
  toolChoice: maybe(oneOf(['all', 'none'])),
  structuredOutput: maybe(oneOf(['json_schema', 'json_object', 'none'])),
  strict: maybe(trueOrFalse),
  stopMax: maybe(valueThat('a number of texts, or Infinity', (max) => typeof max === 'number' && max >= 0)),
  seedField: maybe(oneOf(['seed', 'random_seed', 'none'])),
  callIds: maybe(oneOf(['any', 'nine_alphanumeric'])),
  toolNames: maybe(oneOf(['identifier', 'any'])),
  alternatingRoles: maybe(trueOrFalse),
  finishReasonOptional: maybe(trueOrFalse),
  replayReasoning: maybe(oneOf(['open_turn', 'always', 'never'])),
})

/** What `openaiChat()` takes beside the model id. */
export const openaiChatOptions: OptionCheck = fields<OpenAIChatOptions>(
  { ...both, server: maybe(anyText), quirks: maybe(quirks), reasoningEffort: maybe(anyText) },
  { ...otherNames, reasoning: 'reasoningEffort', effort: 'reasoningEffort' },
)
