import { ConfigurationError } from '@tallystick/core'
import { option, type OptionCheck } from '@tallystick/core/kit'
import {
  apiKey,
  commonChecks,
  objects,
  otherNames,
  requireModelOptions,
} from '../../shared/options/model-options.ts'
import { takesSampling } from './api-version.ts'
import type { AnthropicMcpServer, AnthropicOptions, AnthropicThinking } from './options.ts'

const { anyObject, anyText, fields, filledText, listOf, maybe, numberFrom, oneOf, recordOf, trueOrFalse } =
  option

const thinking = fields<{
  type: string
  budgetTokens?: number | undefined
  display?: string | undefined
  onPrefixMismatch?: string | undefined
}>({
  type: oneOf(['adaptive', 'enabled', 'between_tools', 'disabled'] satisfies AnthropicThinking['type'][]),
  budgetTokens: maybe(numberFrom(1, { whole: true })),
  display: maybe(oneOf(['summarized', 'omitted', 'updates'])),
  onPrefixMismatch: maybe(oneOf(['drop_block', 'error', 'unset'])),
})

const mcpServer = fields<AnthropicMcpServer>({
  name: anyText,
  url: filledText,
  authorizationToken: maybe(anyText),
  toolset: maybe(anyObject),
})

/** What `anthropic()` takes beside the model id. */
const anthropicOptions: OptionCheck = fields<AnthropicOptions>(
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

/** Throws `ConfigurationError` for what could not work in any call. */
export function checkOptions(modelId: string, options: AnthropicOptions): void {
  requireModelOptions('anthropic', anthropicOptions, { modelId, options })
  if (options.client && (options.apiKey ?? options.baseURL ?? options.fetch) !== undefined) {
    throw new ConfigurationError(
      'anthropic() got a client together with apiKey, baseURL or fetch, which the client would ignore. Pass one or the other.',
    )
  }
  checkServers(options.mcpServers ?? [])
  checkExtraBody(options)
}

function checkServers(servers: readonly AnthropicMcpServer[]): void {
  const names = servers.map(({ name }) => name)
  if (new Set(names).size === names.length && !names.includes('')) return
  throw new ConfigurationError(
    'anthropic() got MCP servers without a name, or with the same name, which the service refuses. Give each of mcpServers a name of its own.',
  )
}

/** Fields that the newest versions of the API answer with a refusal, whatever they say. */
const refusedFields = ['temperature', 'top_p', 'top_k']

function checkExtraBody({ extraBody = {}, ...options }: AnthropicOptions): void {
  for (const field of ['stream', 'model', 'messages', ...(takesSampling(options) ? [] : refusedFields)]) {
    if (!(field in extraBody)) continue
    const why = refusedFields.includes(field)
      ? 'which the service no longer takes in the API version that is spoken: every call would be refused'
      : 'without which, as the adapter sends it, no reply could be read'
    throw new ConfigurationError(`anthropic() got ${field} in extraBody, ${why}. Leave it out.`)
  }
}
