import type { Model } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { createModel, createLazyClient } from '../shared/model.ts'
import { copyOptions, type RecordedOptions } from '../shared/options.ts'
import { type BackgroundCalls, createOfficialClient, type OpenAIClient, sdk, startCall } from './client.ts'
import { failures } from './failure.ts'
import { checkResponsesOptions, type OpenAIOptions, type OpenAIWarning, boundWebSearches } from './options.ts'
import {
  type FallbackChanges,
  findFallback,
  renderRequest,
  type RenderSettings,
} from './responses-request.ts'
import { ResponsesReader } from './responses-stream.ts'
import { api } from './responses-wire.ts'

/**
 * A model of OpenAI, or of a server that speaks as it does, over the Responses API and the official SDK. Nothing is
 * sent, and no key looked for, before `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function openai(modelId: string, given: OpenAIOptions = {}): Model {
  checkResponsesOptions(modelId, given)
  const options = copyOptions('openai', given)
  const { chain, conversation } = options
  const provider = options.provider ?? 'openai'
  const settings: Omit<RenderSettings, 'warn'> = {
    ...options,
    modelId,
    provider,
    state: conversation === undefined ? (chain ? 'responses' : 'none') : { conversation },
    reasoning: options.reasoning && omitUndefined({ ...options.reasoning }),
    strictTools: options.strictTools ?? false,
    customTools: options.customTools ?? {},
    toolFields: options.toolFields ?? {},
    providerTools: options.providerTools ?? [],
    approvalTool: options.approvalTool ?? 'mcp_approval',
    background: options.background ?? false,
    nativeTools: { ...options.nativeTools },
  }
  // A change that the service demanded once holds for every later call of this model.
  let learnt: FallbackChanges = {}
  return createModel<OpenAIOptions, OpenAIClient, OpenAIWarning>({
    provider,
    api,
    modelId,
    keepsState: true,
    ...boundWebSearches(options),
    options,
    recorded,
    failures,
    client: createLazyClient('openai', sdk, options, (module, secrets) =>
      createOfficialClient(module, options, secrets),
    ),
    start: (call) => {
      const { client, request, warn } = call
      let changes = learnt
      return startCall({
        ...call,
        maker: 'openai',
        options,
        prepare: () => {
          const { body, context } = renderRequest(request, { ...settings, warn }, changes)
          return { body, reader: new ResponsesReader(context) }
        },
        adapt: (failure, body) => {
          const more = findFallback({ failure, body, changes, given: request.providerState })
          if (more === undefined) return false
          changes = { ...changes, ...more.now }
          learnt = { ...learnt, ...more.forGood }
          if (more.warning) warn(more.warning)
          return true
        },
        background: options.background ? findBackgroundCalls(client) : undefined,
        create: (body, given) => client.responses.create(body, given),
      })
    },
  })
}

/** `undefined` for a client of the user's own that cannot continue a response. */
function findBackgroundCalls({ responses }: OpenAIClient): BackgroundCalls | undefined {
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
