import type { Model, ProviderError } from '@tallystick/core'
import { ConfigurationError } from '@tallystick/core'
import { Observable } from 'rxjs'
import { type Attempt, startCall } from '../openai/call.ts'
import { officialClient, type OpenAIChatClient } from '../openai/client/client.ts'
import { providerErrorOf } from '../openai/client/failure.ts'
import { openaiChatOptions } from '../openai/options/option-check.ts'
import { checkOptions, type OpenAICommonOptions } from '../openai/options/options.ts'
import { refusedSampling } from '../openai/request/sampling.ts'
import { sdk } from '../openai/client/sdk.ts'
import { lateClient } from '../shared/client/late-client.ts'
import { ownSecrets } from '../shared/secrets/own-secrets.ts'
import { pinnedOptions } from '../shared/options/pinned-options.ts'
import { warnOnce, withWarnings } from '../shared/options/warning.ts'
import { allQuirks, type OpenAIChatQuirks, type OpenAIChatServer, quirksOf } from './options/quirks.ts'
import { requestRenderer } from './request/request.ts'
import { replyReader } from './reply/signals.ts'
import { api } from './client/wire.ts'

/** How `openaiChat()` calls its model. Everything may be left out. */
export interface OpenAIChatOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIChatClient | undefined
  /**
   * Which server it is, of those whose ways are known; also the `provider` where none is given. `openai`. It is never
   * guessed from an address.
   */
  readonly server?: OpenAIChatServer | undefined
  /** Ways of the server that differ from what is known of it. */
  readonly quirks?: OpenAIChatQuirks | undefined
  /** How much the model reasons: `none` to `max`; which of them a model takes is its own. */
  readonly reasoningEffort?: string | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
}

/** What decides how the model is to work. */
const pinnedNames = [
  ...(['server', 'quirks', 'reasoningEffort', 'verbosity', 'strictTools', 'customTools'] as const),
  ...(['maxOutputTokens', 'serviceTier'] as const),
]

/**
 * A model of OpenAI, or of any server that speaks as it does, over Chat Completions and the official SDK. Nothing is
 * sent, and no key looked for, before `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function openaiChat(modelId: string, options: OpenAIChatOptions = {}): Model {
  checkOptions({ maker: 'openaiChat', check: openaiChatOptions, modelId, options })
  if (options.client === undefined) sdk.require('openaiChat')
  const { server = 'openai' } = options
  if (!Object.hasOwn(quirksOf, server)) {
    throw new ConfigurationError(
      `openaiChat() got the server ${JSON.stringify(server)}, whose ways are not known. Name one of ${Object.keys(quirksOf).join(', ')}, or tell its ways in quirks.`,
    )
  }
  const provider = options.provider ?? server
  const render = requestRenderer({
    ...{ modelId, provider, quirks: allQuirks(server, options.quirks) },
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
    warn: warnOnce(options.onWarning),
  })
  const secrets = ownSecrets(options)
  const connect = (): ReturnType<typeof officialClient> => officialClient('openaiChat', options, secrets)
  const late = lateClient({ given: options.client, connect })
  // What the model refused once, it refuses in every later call.
  let refused: readonly string[] = []
  return {
    ...{ provider, api, modelId },
    ...pinnedOptions(options, pinnedNames),
    stream: (request, context) =>
      secrets.struckFrom(
        withWarnings((heeding) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) => {
                const { completions } = client.chat
                const prepare = (): Attempt => {
                  const { body, context: read } = heeding(() => render(request, refused))
                  return { body, reader: replyReader(read) }
                }
                const instead = (failure: ProviderError, { body }: Attempt): Attempt | undefined => {
                  const field = refusedSampling(failure, body)
                  if (field === undefined || refused.includes(field)) return undefined
                  refused = [...refused, field]
                  return prepare()
                }
                return startCall({
                  ...{ maker: 'openaiChat', client, options, context, subscriber, prepare, instead },
                  create: (body, given) => completions.create(body, given),
                })
              }),
          }),
        ),
      ),
  }
}
