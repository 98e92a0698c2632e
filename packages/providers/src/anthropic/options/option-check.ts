import { option, type OptionCheck } from '@tallystick/core'
import { apiKey, commonChecks, objects, otherNames } from '../../shared/options/model-options.ts'
import type { AnthropicMcpServer, AnthropicOptions, AnthropicThinking } from './options.ts'

const { anyObject, anyText, fields, filledText, listOf, maybe, numberFrom, oneOf, recordOf, trueOrFalse } =
  option

const thinking = fields<{ type: string; budgetTokens?: number; display?: string }>({
  type: oneOf(['adaptive', 'enabled', 'between_tools', 'disabled'] satisfies AnthropicThinking['type'][]),
  budgetTokens: maybe(numberFrom(1, { whole: true })),
  display: maybe(oneOf(['summarized', 'omitted'])),
})

const mcpServer = fields<AnthropicMcpServer>({
  name: anyText,
  url: filledText,
  authorizationToken: maybe(anyText),
  toolset: maybe(anyObject),
})

/** What `anthropic()` takes beside the model id. */
export const anthropicOptions: OptionCheck = fields<AnthropicOptions>(
  {
    ...commonChecks,
    apiKey: maybe(apiKey),
    client: maybe(anyObject),
    thinking: maybe(thinking),
    effort: maybe(oneOf(['low', 'medium', 'high', 'xhigh', 'max'])),
    promptCache: maybe(oneOf(['5m', '1h', 'off'])),
    citations: maybe(trueOrFalse),
    strictTools: maybe(trueOrFalse),
    eagerToolInputs: maybe(trueOrFalse),
    toolFields: maybe(recordOf(anyObject)),
    providerTools: maybe(objects),
    mcpServers: maybe(listOf(mcpServer)),
    contextEdits: maybe(objects),
    betas: maybe(listOf(anyText)),
  },
  otherNames,
)
