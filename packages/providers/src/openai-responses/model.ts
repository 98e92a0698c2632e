import { ConfigurationError, type JsonObject, type Model, type ProviderError } from '@tallystick/core'
import { Observable } from 'rxjs'
import { type Attempt, startCall } from '../openai/call.ts'
import { officialClient, type OpenAIClient } from '../openai/client.ts'
import { codeOf, providerErrorOf } from '../openai/failure.ts'
import { checkOptions, type OpenAICommonOptions } from '../openai/options.ts'
import { warnOnce, withWarnings } from '../shared/warning.ts'
import { type Concessions, requestRenderer, type RequestSettings } from './request.ts'
import { replyReader } from './signals.ts'
import { api } from './wire.ts'

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
  /** Tools that OpenAI runs itself, in its own words, such as `{ type: 'web_search' }`. */
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
  checkOptions('openai', modelId, options)
  checkState(options)
  const settings = settingsOf(modelId, options)
  const render = requestRenderer(settings)
  let client = options.client
  // What the service taught once holds for every later call of this model.
  let learnt: Concessions = {}
  return {
    ...{ provider: settings.provider, api, modelId },
    stream: (request, context) =>
      withWarnings(
        (heeding) =>
          new Observable((subscriber) => {
            try {
              client ??= officialClient(options)
            } catch (error) {
              return subscriber.error(providerErrorOf(error, { now: context.clock.now() }))
            }
            const { responses } = client
            let conceded = learnt
            const prepare = (): Attempt => {
              const rendered = heeding(() => render(request, conceded))
              return { body: rendered.body, reader: replyReader(rendered.context) }
            }
            const instead = (failure: ProviderError, { body }: Attempt): Attempt | undefined => {
              const more = concessionFor(failure, body)
              // Conceded already, and still refused: something else in the request insists on it.
              const anew = Object.keys(more?.now ?? {}).some((one) => !(one in conceded))
              if (more === undefined || !anew) return undefined
              conceded = { ...conceded, ...more.now }
              learnt = { ...learnt, ...more.forGood }
              heeding(() => settings.warn(more.warning))
              return prepare()
            }
            return startCall({
              ...{ client, options, context, subscriber, prepare, instead },
              create: (body, given) => responses.create(body, given),
            })
          }),
      ),
  }
}

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
    extraBody: options.extraBody,
    warn: warnOnce(options.onWarning),
  }
}

interface Concession {
  readonly now: Concessions
  readonly forGood: Concessions
  readonly warning: { readonly what: 'state' | 'reasoning'; readonly message: string }
}

const lostState = new Set(['previous_response_not_found', 'conversation_not_found'])

/** What to do without, when a request was refused for the one thing that can be done without. */
function concessionFor(failure: ProviderError, body: object): Concession | undefined {
  const { message } = failure
  const refused = failure.class === 'invalid_request' || failure.class === 'not_found'
  if (!refused) return undefined
  if ('previous_response_id' in body || 'conversation' in body) {
    const lost =
      lostState.has(codeOf(failure) ?? '') ||
      /(previous response|conversation)\b.*\b(not found|does not exist|expired)/i.test(message)
    if (lost) {
      const told = 'The service no longer has what it kept of this history, so the request carried all of it.'
      return { now: { stateLost: true }, forGood: {}, warning: { what: 'state', message: told } }
    }
  }
  if (
    'include' in body &&
    /encrypted.?content is not supported|reasoning\.encrypted_content/i.test(message)
  ) {
    const told = 'The model knows no encrypted reasoning, so it is no longer asked for.'
    const conceded = { noEncryption: true }
    return { now: conceded, forGood: conceded, warning: { what: 'reasoning', message: told } }
  }
  return undefined
}
