import type { Model } from '@tallystick/core'
import { createModel, createLazyClient } from '../shared/model.ts'
import { copyOptions, type RecordedOptions } from '../shared/options.ts'
import { api } from './chat-messages.ts'
import { renderRequest } from './chat-request.ts'
import { ChatReader } from './chat-stream.ts'
import { createOfficialClient, type OpenAIChatClient, sdk, startCall } from './client.ts'
import { failures } from './failure.ts'
import { resolveQuirks, checkChatOptions, type OpenAIChatOptions, type OpenAIWarning } from './options.ts'
import { findRefusedField } from './request.ts'

const recorded: RecordedOptions<OpenAIChatOptions> = {
  pinned: [
    ...(['server', 'quirks', 'reasoningEffort', 'verbosity', 'strictTools', 'customTools'] as const),
    ...(['maxOutputTokens', 'serviceTier'] as const),
  ],
  added: { promptCacheKey: 'prompt_cache_key', metadata: 'metadata' },
  written: [
    ...([
      'messages',
      'tools',
      'tool_choice',
      'parallel_tool_calls',
      'response_format',
      'stream_options',
    ] as const),
    ...(['max_tokens', 'max_completion_tokens', 'reasoning_effort', 'verbosity', 'service_tier'] as const),
    ...(['temperature', 'top_p', 'stop', 'seed', 'prompt_cache_key', 'metadata'] as const),
  ],
}

/**
 * A model of OpenAI, or of any server that speaks as it does, over Chat Completions and the official SDK. Nothing is
 * sent, and no key looked for, before `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function openaiChat(modelId: string, given: OpenAIChatOptions = {}): Model {
  checkChatOptions(modelId, given)
  const options = copyOptions('openaiChat', given)
  const { server = 'openai' } = options
  const provider = options.provider ?? server
  const settings = {
    ...options,
    modelId,
    provider,
    quirks: resolveQuirks(server, options.quirks),
    strictTools: options.strictTools ?? false,
    customTools: options.customTools ?? {},
    toolFields: options.toolFields ?? {},
  }
  // A parameter that the model refused once is left out of every later call.
  let refused: readonly string[] = []
  return createModel<OpenAIChatOptions, OpenAIChatClient, OpenAIWarning>({
    provider,
    api,
    modelId,
    options,
    recorded,
    failures,
    client: createLazyClient('openaiChat', sdk, options, (module, secrets) =>
      createOfficialClient(module, options, secrets),
    ),
    start: (call) => {
      const { completions } = call.client.chat
      return startCall({
        ...call,
        maker: 'openaiChat',
        options,
        prepare: () => {
          const { body, context } = renderRequest(call.request, { ...settings, warn: call.warn }, refused)
          return { body, reader: new ChatReader(context) }
        },
        adapt: (failure, body) => {
          const field = findRefusedField(failure, body)
          if (field === undefined || refused.includes(field)) return false
          refused = [...refused, field]
          return true
        },
        create: (body, given) => completions.create(body, given),
      })
    },
  })
}
