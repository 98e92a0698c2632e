import { ConfigurationError, type JsonObject, type Model, type ProviderError } from '@tallystick/core'
import { Observable } from 'rxjs'
import { type Attempt, startCall } from '../openai/call.ts'
import { officialClient, type OpenAIClient } from '../openai/client/client.ts'
import { providerErrorOf } from '../openai/client/failure.ts'
import { openaiOptions } from '../openai/options/option-check.ts'
import { checkOptions, type OpenAICommonOptions } from '../openai/options/options.ts'
import { sdk } from '../openai/client/sdk.ts'
import { lateClient } from '../shared/client/late-client.ts'
import { ownSecrets } from '../shared/secrets/own-secrets.ts'
import { pinnedOptions } from '../shared/options/pinned-options.ts'
import { warnOnce, withWarnings } from '../shared/options/warning.ts'
import { concessionFor } from './request/fallback-request.ts'
import { type Concessions, requestRenderer, type RequestSettings } from './request/request.ts'
import { replyReader } from './reply/signals.ts'
import { webSearchesOf } from './options/web-searches.ts'
import { api } from './client/wire.ts'

/** How `openai()` calls its model. Everything may be left out. */
export interface OpenAIOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIClient | undefined
  /**
   * How the model reasons: `effort` (`none` to `max`; which of them a model takes is its own), and `summary`, without
   * which no reasoning is shown.
   */
  readonly reasoning?:
    | { readonly effort?: string; readonly summary?: 'auto' | 'concise' | 'detailed' }
    | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
  /**
   * What OpenAI is to add to its reply beside what the adapter needs, such as `web_search_call.action.sources`. It is kept
   * with the parts of the reply.
   */
  readonly include?: readonly string[] | undefined
  /**
   * Tools that OpenAI runs itself, in its own words, such as `{ type: 'web_search' }`. A run with `costMaxUsd` needs a bound
   * of the searches, since OpenAI bills each: `extraBody: { max_tool_calls: 3 }`.
   */
  readonly providerTools?: readonly JsonObject[] | undefined
  /**
   * The tool that stands for the question whether a call to an MCP server may be made: the call comes here under this
   * name with `server`, `tool` and `input`, and a result that is a success approves it. `mcp_approval`.
   */
  readonly approvalTool?: string | undefined
  /**
   * Lets OpenAI keep each response, and sends only what is new behind the last of them (`previous_response_id`).
   * Without it OpenAI keeps nothing, and every request carries the whole history.
   */
  readonly chain?: boolean | undefined
  /** The id of a conversation that OpenAI keeps: requests carry only what it has not seen. Not together with `chain`. */
  readonly conversation?: string | undefined
}

/**
 * A model of OpenAI, or of a server that speaks as it does, over the Responses API and the official SDK. Nothing is
 * sent, and no key looked for, before `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function openai(modelId: string, options: OpenAIOptions = {}): Model {
  checkOptions({ maker: 'openai', check: openaiOptions, modelId, options })
  if (options.client === undefined) sdk.require('openai')
  checkState(options)
  const settings = settingsOf(modelId, options)
  const render = requestRenderer(settings)
  const secrets = ownSecrets(options)
  const connect = (): ReturnType<typeof officialClient> => officialClient('openai', options, secrets)
  const late = lateClient({ given: options.client, connect })
  // What the service taught once holds for every later call of this model.
  let learnt: Concessions = {}
  return {
    ...{ provider: settings.provider, api, modelId },
    ...pinnedOptions(options, pinnedNames),
    ...webSearchesOf(options),
    stream: (request, context) =>
      secrets.struckFrom(
        withWarnings((heeding) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) => {
                const { responses } = client
                let conceded = learnt
                const prepare = (): Attempt => {
                  const rendered = heeding(() => render(request, conceded))
                  return { body: rendered.body, reader: replyReader(rendered.context) }
                }
                const instead = (failure: ProviderError, { body }: Attempt): Attempt | undefined => {
                  const more = concessionFor({ failure, body, conceded })
                  if (more === undefined) return undefined
                  conceded = { ...conceded, ...more.now }
                  learnt = { ...learnt, ...more.forGood }
                  const { warning } = more
                  if (warning) heeding(() => settings.warn(warning))
                  return prepare()
                }
                return startCall({
                  ...{ maker: 'openai', client, options, context, subscriber, prepare, instead },
                  create: (body, given) => responses.create(body, given),
                })
              }),
          }),
        ),
      ),
  }
}

/** What decides where a call goes, and how the model is to work. */
const pinnedNames = [
  ...(['conversation', 'chain', 'reasoning', 'verbosity', 'include', 'approvalTool'] as const),
  ...(['strictTools', 'customTools', 'maxOutputTokens', 'serviceTier'] as const),
]

function checkState({ chain, conversation }: OpenAIOptions): void {
  if (conversation === undefined) return
  if (chain || conversation.trim() === '') {
    throw new ConfigurationError(
      'openai() got a conversation that is empty, or together with chain; the service goes on from one of the two. Pass the id of a conversation, or chain.',
    )
  }
}

function settingsOf(modelId: string, options: OpenAIOptions): RequestSettings {
  const { chain, conversation } = options
  return {
    modelId,
    provider: options.provider ?? 'openai',
    maxOutputTokens: options.maxOutputTokens,
    state: conversation === undefined ? (chain ? 'responses' : 'none') : { conversation },
    reasoning: options.reasoning && { ...options.reasoning },
    verbosity: options.verbosity,
    strictTools: options.strictTools ?? false,
    customTools: options.customTools ?? {},
    toolFields: options.toolFields ?? {},
    providerTools: options.providerTools ?? [],
    approvalTool: options.approvalTool ?? 'mcp_approval',
    promptCacheKey: options.promptCacheKey,
    include: options.include,
    serviceTier: options.serviceTier,
    metadata: options.metadata,
    extraBody: options.extraBody,
    warn: warnOnce(options.onWarning),
  }
}
