import type { Model, ProviderError } from '@tallystick/core'
import { Observable } from 'rxjs'
import { lateClient } from '../shared/call.ts'
import {
  collectWarnings,
  ownOptions,
  type RecordedOptions,
  recordedOptions,
  warnOnce,
} from '../shared/options.ts'
import { ownSecrets } from '../shared/secrets.ts'
import { api } from './chat-messages.ts'
import { requestRenderer } from './chat-request.ts'
import { replyReader } from './chat-stream.ts'
import { type Attempt, officialClient, sdk, startCall } from './client.ts'
import { providerErrorOf } from './failure.ts'
import { allQuirks, checkChatOptions, type OpenAIChatOptions } from './options.ts'
import { refusedField } from './request.ts'

/** What decides how the model is to work, and what else is sent. */
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
  const options = ownOptions('openaiChat', given)
  if (options.client === undefined) sdk.require('openaiChat')
  const { server = 'openai' } = options
  const provider = options.provider ?? server
  const render = requestRenderer({
    modelId,
    provider,
    quirks: allQuirks(server, options.quirks),
    maxOutputTokens: options.maxOutputTokens,
    reasoningEffort: options.reasoningEffort,
    verbosity: options.verbosity,
    strictTools: options.strictTools ?? false,
    customTools: options.customTools ?? {},
    toolFields: options.toolFields ?? {},
    promptCacheKey: options.promptCacheKey,
    serviceTier: options.serviceTier,
    metadata: options.metadata,
    extraBody: options.extraBody,
  })
  const report = warnOnce(options.onWarning)
  const secrets = ownSecrets(options)
  const connect = (): ReturnType<typeof officialClient> => officialClient('openaiChat', options, secrets)
  const late = lateClient({ given: options.client, connect })
  // What the model refused once, it refuses in every later call.
  let refused: readonly string[] = []
  return {
    provider,
    api,
    modelId,
    ...recordedOptions(options, recorded),
    stream: (request, context) =>
      secrets.struckFrom(
        collectWarnings(report, (warn) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) => {
                const { completions } = client.chat
                const prepare = (): Attempt => {
                  const { body, context: read } = render(request, { warn, refused })
                  return { body, reader: replyReader(read) }
                }
                const fallbackRequest = (failure: ProviderError, body: object): Attempt | undefined => {
                  const field = refusedField(failure, body)
                  if (field === undefined || refused.includes(field)) return undefined
                  refused = [...refused, field]
                  return prepare()
                }
                return startCall({
                  maker: 'openaiChat',
                  client,
                  options,
                  context,
                  subscriber,
                  prepare,
                  fallbackRequest,
                  create: (body, given) => completions.create(body, given),
                })
              }),
          }),
        ),
      ),
  }
}
