import {
  ConfigurationError,
  type Cancel,
  type JsonObject,
  type Model,
  type ModelContext,
  type ModelRequest,
  type ModelSignal,
} from '@tallystick/core'
import { Observable, type Subscriber } from 'rxjs'
import { observedResponse, type ResponseFacts } from '../shared/observed-response.ts'
import { type SilenceWatch, watchSilence } from '../shared/silence-watch.ts'
import {
  type AnthropicCallOptions,
  type AnthropicClient,
  type AnthropicClientOptions,
  type AnthropicMiddleware,
  officialClient,
} from './client.ts'
import { notAStream, providerErrorOf, silentReply, truncatedReply } from './failure.ts'
import { requestRenderer, type RequestRenderer } from './request.ts'
import { readEvent, type Reply, startReply } from './signals.ts'
import { api, provider, type WireEvent, type WireThinking } from './wire.ts'

/** How the model thinks before it answers. Which of these a model takes, and what holds when none is set, is its own. */
export type AnthropicThinking =
  /** The model decides when and how much. */
  | { readonly type: 'adaptive'; readonly display?: 'summarized' | 'omitted' }
  /** Up to `budgetTokens` (at least 1024) in every reply; a request that cannot have them goes out without. */
  | { readonly type: 'enabled'; readonly budgetTokens: number; readonly display?: 'summarized' | 'omitted' }
  | { readonly type: 'between_tools' }
  | { readonly type: 'disabled' }

/** How `anthropic()` calls its model. Everything may be left out. */
export interface AnthropicOptions extends AnthropicClientOptions {
  /** A client of your own (another cloud, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: AnthropicClient | undefined
  /** Output tokens of one reply at most, thinking included, where the request does not say. 32 000. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: AnthropicThinking | undefined
  readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined
  /**
   * How long the vendor keeps the beginning of the prompt in its cache: five minutes (the default; writing costs a
   * quarter more than reading anew, finding it a tenth), an hour, or not at all.
   */
  readonly promptCache?: '5m' | '1h' | 'off' | undefined
  /** Tools that Anthropic runs itself, in its own words, such as `{ type: 'web_search_20260318', name: 'web_search' }`. */
  readonly providerTools?: readonly JsonObject[] | undefined
  /** Values of the `anthropic-beta` header. */
  readonly betas?: readonly string[] | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Fields of the request's body that no option covers. They win over those that one does. */
  readonly extraBody?: JsonObject | undefined
  /** The longest wait for an answer to begin, in milliseconds. 5 minutes, which is also where Node's own fetch gives up. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds; keep-alives break it. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}

// A timer cannot wait longer. The client's own must not go off before ours, which runs on the runtime's clock.
const longestTimerMs = 2 ** 31 - 1
// How long the rest of a finished answer may take to come, so that its connection can be used again.
const drainMs = 1000

/**
 * A model of Anthropic, over its Messages API and its official SDK. Nothing is sent, and no key looked for, before
 * `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function anthropic(modelId: string, options: AnthropicOptions = {}): Model {
  checkOptions(modelId, options)
  const render = requestRenderer({
    modelId,
    maxOutputTokens: options.maxOutputTokens ?? 32_000,
    promptCache: options.promptCache ?? '5m',
    thinking: wireThinking(options.thinking),
    effort: options.effort,
    providerTools: options.providerTools,
    extraBody: options.extraBody,
  })
  let client = options.client
  return {
    provider,
    api,
    modelId,
    stream: (request, context) =>
      new Observable((subscriber) => {
        try {
          client ??= officialClient(options)
        } catch (error) {
          return subscriber.error(providerErrorOf(error, { now: context.clock.now() }))
        }
        return startCall({ client, options, render, request, context, subscriber })
      }),
  }
}

function checkOptions(modelId: string, options: AnthropicOptions): void {
  if (modelId.trim() === '') {
    throw new ConfigurationError(
      'anthropic() got an empty model id, so no call could succeed. Pass one, such as "claude-opus-4-8".',
    )
  }
  if (options.client && (options.apiKey ?? options.baseURL ?? options.fetch) !== undefined) {
    throw new ConfigurationError(
      'anthropic() got a client together with apiKey, baseURL or fetch, which the client would ignore. Pass one or the other.',
    )
  }
  for (const name of ['maxOutputTokens', 'responseTimeoutMs', 'idleTimeoutMs'] as const) {
    const value = options[name]
    if (value === undefined || (Number.isInteger(value) && value > 0 && value <= longestTimerMs)) continue
    throw new ConfigurationError(
      `anthropic() got ${name} ${value}, with which no call could succeed. Pass a whole number above 0.`,
    )
  }
}

function wireThinking(thinking: AnthropicThinking | undefined): WireThinking | undefined {
  if (thinking?.type !== 'enabled') return thinking
  const { budgetTokens, ...rest } = thinking
  return { ...rest, budget_tokens: budgetTokens }
}

interface Call {
  readonly client: AnthropicClient
  readonly options: AnthropicOptions
  readonly render: RequestRenderer
  readonly request: ModelRequest
  readonly context: ModelContext
  readonly subscriber: Subscriber<ModelSignal>
}

/** Starts the call and answers how to stop it: the connection is closed when that returns. */
function startCall(call: Call): () => void {
  const { context, options, subscriber } = call
  const abort = new AbortController()
  const facts: ResponseFacts = {}
  const watch = watchSilence(context.clock, options.responseTimeoutMs ?? 300_000, (limitMs) => {
    subscriber.error(silentReply(limitMs, facts.requestId))
  })
  const outcome = { finished: false }
  void pump(call, { abort, facts, watch, outcome })
  return () => {
    watch.stop()
    if (!outcome.finished) abort.abort()
  }
}

interface Line {
  readonly abort: AbortController
  readonly facts: ResponseFacts
  readonly watch: SilenceWatch
  readonly outcome: { finished: boolean }
}

/** Carries the wire's events to the subscriber, until one of the two has had enough. Never rejects. */
async function pump(call: Call, line: Line): Promise<void> {
  const { context, subscriber } = call
  const { abort, facts, watch, outcome } = line
  let stopDraining: Cancel | undefined
  try {
    const { body, names } = call.render(call.request, context.clock.now())
    const reply = startReply(names)
    const events = await call.client.messages.create(body, callOptions(call.options, line))
    watch.allow(idleTimeoutOf(call.options))
    let heard = false
    for await (const event of events) {
      heard = true
      watch.heard()
      // What follows the end is only waited for: a connection that is read to its end can be used again.
      if (outcome.finished) continue
      if (subscriber.closed) return
      deliver(reply, event as WireEvent, subscriber)
      if (!reply.finished || subscriber.closed) continue
      outcome.finished = true
      stopDraining = context.clock.schedule(drainMs, () => abort.abort())
      subscriber.complete()
    }
    if (!reply.finished) subscriber.error(endedEarly(heard, facts))
  } catch (error) {
    if (!subscriber.closed) {
      subscriber.error(providerErrorOf(error, { now: context.clock.now(), requestId: facts.requestId }))
    }
  } finally {
    stopDraining?.()
  }
}

function deliver(reply: Reply, event: WireEvent, subscriber: Subscriber<ModelSignal>): void {
  for (const signal of readEvent(reply, event)) subscriber.next(signal)
}

function endedEarly(heard: boolean, { contentType, requestId }: ResponseFacts): Error {
  const otherType = contentType !== undefined && !contentType.includes('text/event-stream')
  return !heard && otherType ? notAStream(contentType, requestId) : truncatedReply(requestId)
}

function idleTimeoutOf(options: AnthropicOptions): number {
  return options.idleTimeoutMs ?? 120_000
}

function callOptions(options: AnthropicOptions, { abort, facts, watch }: Line): AnthropicCallOptions {
  const observe: AnthropicMiddleware = async (request, next) => {
    const response = await next(request)
    facts.requestId = response.headers.get('request-id') ?? undefined
    facts.contentType = response.headers.get('content-type') ?? undefined
    return observedResponse(response, () => watch.heard())
  }
  return {
    signal: abort.signal,
    maxRetries: 0,
    timeout: longestTimerMs,
    headers: {
      ...(options.betas?.length && { 'anthropic-beta': options.betas.join(',') }),
      ...options.headers,
    },
    middleware: [observe],
  }
}
