import type { Model, ProviderError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
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
import {
  type Attempt,
  type BackgroundCalls,
  officialClient,
  type OpenAIClient,
  sdk,
  startCall,
} from './client.ts'
import { providerErrorOf } from './failure.ts'
import { checkResponsesOptions, type OpenAIOptions, webSearchesOf } from './options.ts'
import {
  type FallbackChanges,
  fallbackFor,
  requestRenderer,
  type RequestSettings,
} from './responses-request.ts'
import { replyReader } from './responses-stream.ts'
import { api } from './responses-wire.ts'

/**
 * A model of OpenAI, or of a server that speaks as it does, over the Responses API and the official SDK. Nothing is
 * sent, and no key looked for, before `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function openai(modelId: string, given: OpenAIOptions = {}): Model {
  checkResponsesOptions(modelId, given)
  const options = ownOptions('openai', given)
  if (options.client === undefined) sdk.require('openai')
  const settings = settingsOf(modelId, options)
  const render = requestRenderer(settings)
  const report = warnOnce(options.onWarning)
  const secrets = ownSecrets(options)
  const connect = (): ReturnType<typeof officialClient> => officialClient('openai', options, secrets)
  const late = lateClient({ given: options.client, connect })
  // What the service taught once holds for every later call of this model.
  let learnt: FallbackChanges = {}
  return {
    provider: settings.provider,
    api,
    modelId,
    keepsState: true,
    ...recordedOptions(options, recorded),
    ...webSearchesOf(options),
    stream: (request, context) =>
      secrets.struckFrom(
        collectWarnings(report, (warn) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) => {
                const { responses } = client
                let changes = learnt
                const prepare = (): Attempt => {
                  const rendered = render(request, { warn, changes })
                  return { body: rendered.body, reader: replyReader(rendered.context) }
                }
                const fallbackRequest = (failure: ProviderError, body: object): Attempt | undefined => {
                  const more = fallbackFor({ failure, body, changes, given: request.providerState })
                  if (more === undefined) return undefined
                  changes = { ...changes, ...more.now }
                  learnt = { ...learnt, ...more.forGood }
                  const { warning } = more
                  if (warning) warn(warning)
                  return prepare()
                }
                return startCall({
                  maker: 'openai',
                  client,
                  options,
                  context,
                  subscriber,
                  prepare,
                  fallbackRequest,
                  background: options.background ? backgroundCalls(client) : undefined,
                  create: (body, given) => responses.create(body, given),
                })
              }),
          }),
        ),
      ),
  }
}

/** What the client can do with a response in the background; one of the user's own may know nothing of that. */
function backgroundCalls({ responses }: OpenAIClient): BackgroundCalls | undefined {
  if (responses.retrieve === undefined) return undefined
  // The official client takes more than it needs to be known for.
  const known = responses as unknown as { readonly retrieve: BackgroundCalls['retrieve'] } & {
    cancel?(id: string, given: { readonly maxRetries: number }): PromiseLike<unknown>
  }
  return {
    retrieve: (...asked) => known.retrieve(...asked),
    cancel: async (id) => known.cancel?.(id, { maxRetries: 0 }),
  }
}

/** What decides where a call goes, how the model is to work, and what else is sent. */
const recorded: RecordedOptions<OpenAIOptions> = {
  pinned: [
    ...(['conversation', 'chain', 'reasoning', 'verbosity', 'include', 'approvalTool'] as const),
    ...([
      'background',
      'nativeTools',
      'strictTools',
      'customTools',
      'maxOutputTokens',
      'serviceTier',
    ] as const),
  ],
  added: { promptCacheKey: 'prompt_cache_key', metadata: 'metadata' },
  written: [
    ...(['instructions', 'input', 'tools', 'tool_choice', 'parallel_tool_calls', 'text'] as const),
    ...(['reasoning', 'include', 'max_output_tokens', 'store', 'previous_response_id'] as const),
    ...(['conversation', 'service_tier', 'temperature', 'top_p', 'prompt_cache_key', 'metadata'] as const),
  ],
}

function settingsOf(modelId: string, options: OpenAIOptions): RequestSettings {
  const { chain, conversation } = options
  return {
    modelId,
    provider: options.provider ?? 'openai',
    maxOutputTokens: options.maxOutputTokens,
    state: conversation === undefined ? (chain ? 'responses' : 'none') : { conversation },
    reasoning: options.reasoning && omitUndefined({ ...options.reasoning }),
    verbosity: options.verbosity,
    strictTools: options.strictTools ?? false,
    customTools: options.customTools ?? {},
    toolFields: options.toolFields ?? {},
    providerTools: options.providerTools ?? [],
    approvalTool: options.approvalTool ?? 'mcp_approval',
    background: options.background ?? false,
    nativeTools: { ...options.nativeTools },
    promptCacheKey: options.promptCacheKey,
    include: options.include,
    serviceTier: options.serviceTier,
    metadata: options.metadata,
    extraBody: options.extraBody,
  }
}
