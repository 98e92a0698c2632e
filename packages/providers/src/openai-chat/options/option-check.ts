import { ConfigurationError } from '@tallystick/core'
import {
  anyText,
  bothChecks,
  checkBothOptions,
  fields,
  maybe,
  oneOf,
  trueOrFalse,
  valueThat,
} from '../../openai/options/option-check.ts'
import { otherNames } from '../../shared/options/model-options.ts'
import type { OpenAIChatOptions } from './options.ts'
import { type OpenAIChatQuirks, quirksOf } from './quirks.ts'

const quirks = fields<OpenAIChatQuirks>({
  systemRole: maybe(oneOf(['system', 'developer'])),
  maxTokensField: maybe(oneOf(['max_completion_tokens', 'max_tokens'])),
  streamUsage: maybe(trueOrFalse),
  parallelToolCalls: maybe(trueOrFalse),
  toolChoice: maybe(oneOf(['all', 'none'])),
  structuredOutput: maybe(oneOf(['json_schema', 'json_object', 'none'])),
  strict: maybe(trueOrFalse),
  maxStop: maybe(valueThat('a number of texts, or Infinity', (max) => typeof max === 'number' && max >= 0)),
  seedField: maybe(oneOf(['seed', 'random_seed', 'none'])),
  callIds: maybe(oneOf(['any', 'nine_alphanumeric'])),
  toolNames: maybe(oneOf(['identifier', 'any'])),
  alternatingRoles: maybe(trueOrFalse),
  finishReasonOptional: maybe(trueOrFalse),
  replayReasoning: maybe(oneOf(['open_turn', 'turns_with_calls', 'always', 'never'])),
  reasoningPlaceholder: maybe(
    valueThat('a text, or false', (value) => typeof value === 'string' || value === false),
  ),
  readsArguments: maybe(trueOrFalse),
  signsCalls: maybe(trueOrFalse),
})

/** What `openaiChat()` takes beside the model id. */
const openaiChatOptions = fields<OpenAIChatOptions>(
  { ...bothChecks, server: maybe(anyText), quirks: maybe(quirks), reasoningEffort: maybe(anyText) },
  otherNames,
)

/** Throws `ConfigurationError` for what could not work in any call. */
export function checkChatOptions(modelId: string, options: OpenAIChatOptions): void {
  checkBothOptions({ maker: 'openaiChat', check: openaiChatOptions, modelId, options })
  const { server = 'openai' } = options
  if (Object.hasOwn(quirksOf, server)) return
  throw new ConfigurationError(
    `openaiChat() got the server ${JSON.stringify(server)}, which it does not know. Name one of ${Object.keys(quirksOf).join(', ')}, or describe the server in quirks.`,
  )
}
