import type { Cancel, Model, ModelContext, ModelRequest, ModelSignal } from '@tallystick/core'
import { Observable, type Subscriber } from 'rxjs'
import { observedResponse, type ResponseFacts } from '../shared/observed-response.ts'
import { type SilenceWatch, watchSilence } from '../shared/silence-watch.ts'
import { warnOnce, withWarnings } from '../shared/warning.ts'
import {
  type AnthropicCallOptions,
  type AnthropicClient,
  type AnthropicMiddleware,
  officialClient,
} from './client.ts'
import { notAStream, providerErrorOf, silentReply, truncatedReply } from './failure.ts'
import { type AnthropicOptions, type AnthropicThinking, checkOptions, longestTimerMs } from './options.ts'
import { requestRenderer, type RequestRenderer } from './request.ts'
import { readEvent, type Reply, startReply } from './signals.ts'
import { api, provider, type WireEvent, type WireThinking } from './wire.ts'

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
    citations: options.citations,
    strictTools: options.strictTools,
    eagerToolInputs: options.eagerToolInputs,
    toolFields: options.toolFields,
    providerTools: options.providerTools,
    mcpServers: options.mcpServers,
    contextEdits: options.contextEdits,
    betas: options.betas,
    extraBody: options.extraBody,
    warn: warnOnce(options.onWarning),
  })
  let client = options.client
  return {
    provider,
    api,
    modelId,
    stream: (request, context) =>
      withWarnings(
        (heeding) =>
          new Observable((subscriber) => {
            try {
              client ??= officialClient(options)
            } catch (error) {
              return subscriber.error(providerErrorOf(error, { now: context.clock.now() }))
            }
            const heeded: RequestRenderer = (...asked) => heeding(() => render(...asked))
            return startCall({ client, options, render: heeded, request, context, subscriber })
          }),
      ),
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
  const outcome = { finished: false, observed: false }
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
  /** `observed`: the bytes are watched, which says more than the events. */
  readonly outcome: { finished: boolean; observed: boolean }
}

/** Carries the wire's events to the subscriber, until one of the two has had enough. Never rejects. */
async function pump(call: Call, line: Line): Promise<void> {
  const { context, subscriber } = call
  const { abort, facts, watch, outcome } = line
  let stopDraining: Cancel | undefined
  try {
    const { body, names, betas } = call.render(call.request, context.clock.now())
    const reply = startReply(names)
    const events = await call.client.messages.create(body, callOptions(call.options, betas, line))
    watch.allow(idleTimeoutOf(call.options))
    let heard = false
    for await (const event of events) {
      heard = true
      if (!outcome.observed) watch.heard()
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

function callOptions(
  options: AnthropicOptions,
  betas: readonly string[],
  { abort, facts, watch, outcome }: Line,
): AnthropicCallOptions {
  const observe: AnthropicMiddleware = async (request, next) => {
    const response = await next(request)
    const { headers } = response
    // Bedrock has a name of its own for it.
    facts.requestId = headers.get('request-id') ?? headers.get('x-amzn-requestid') ?? undefined
    facts.contentType = headers.get('content-type') ?? undefined
    const observed = observedResponse(response, () => watch.heard())
    outcome.observed = observed !== response
    return observed
  }
  return {
    signal: abort.signal,
    maxRetries: 0,
    timeout: longestTimerMs,
    headers: {
      ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }),
      ...options.headers,
    },
    middleware: [observe],
  }
}
