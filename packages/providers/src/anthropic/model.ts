import type { Cancel, Model, ModelContext, ModelRequest, ModelSignal } from '@tallystick/core'
import { Observable, type Subscriber } from 'rxjs'
import { lateClient } from '../shared/client/late-client.ts'
import { pinnedOptions } from '../shared/options/pinned-options.ts'
import { warnOnce, withWarnings } from '../shared/options/warning.ts'
import { ownSecrets } from '../shared/secrets/own-secrets.ts'
import { observedResponse, type ResponseFacts } from '../shared/stream/observed-response.ts'
import {
  drainMs,
  idleTimeoutDefaultMs,
  type Line,
  longestTimerMs,
  openLine,
} from '../shared/stream/open-connection.ts'
import {
  type AnthropicCallOptions,
  type AnthropicClient,
  type AnthropicMiddleware,
  officialClient,
} from './client/client.ts'
import { notAStream, providerErrorOf, silentReply, truncatedReply } from './client/failure.ts'
import { sdk } from './client/sdk.ts'
import { api, provider, type WireEvent, type WireThinking } from './client/wire.ts'
import { takesSampling } from './options/api-version.ts'
import { checkOptions } from './options/option-check.ts'
import type { AnthropicOptions, AnthropicThinking } from './options/options.ts'
import { webSearchesOf } from './options/web-searches.ts'
import { readEvent, type Reply, startReply } from './reply/signals.ts'
import { requestRenderer, type RequestRenderer } from './request/request.ts'

/** What decides how the model is to work. */
const pinnedNames = [
  ...(['maxOutputTokens', 'thinking', 'effort', 'promptCache', 'citations', 'strictTools'] as const),
  ...(['eagerToolInputs', 'contextEdits', 'betas'] as const),
]

/**
 * A model of Anthropic, over its Messages API and its official SDK. Nothing is sent, and no key looked for, before
 * `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function anthropic(modelId: string, options: AnthropicOptions = {}): Model {
  checkOptions(modelId, options)
  if (options.client === undefined) sdk.require('anthropic')
  const render = requestRenderer({
    modelId,
    maxOutputTokens: options.maxOutputTokens ?? 32_000,
    promptCache: options.promptCache ?? '5m',
    takesSampling: takesSampling(options),
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
  const secrets = ownSecrets(options)
  const late = lateClient({ given: options.client, connect: () => officialClient(options, secrets) })
  return {
    ...{ provider, api, modelId },
    ...pinnedOptions(options, pinnedNames),
    ...webSearchesOf(options),
    stream: (request, context) =>
      secrets.struckFrom(
        withWarnings((heeding) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) => {
                const heeded: RequestRenderer = (...asked) => heeding(() => render(...asked))
                return startCall({ client, options, render: heeded, request, context, subscriber })
              }),
          }),
        ),
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

/** What is known of the answer before it is read. */
interface Answer extends ResponseFacts {
  /** Whether the bytes are watched, which says more than the events. */
  observed?: boolean
}

/** Starts the call and answers how to stop it. */
function startCall(call: Call): () => void {
  const { context, options, subscriber } = call
  const answer: Answer = {}
  const lineOptions = {
    ...{ clock: context.clock, subscriber, responseTimeoutMs: options.responseTimeoutMs },
    silentReply: (limitMs: number) => silentReply(limitMs, answer.requestId),
  }
  return openLine(lineOptions, (line) => pump(call, line, answer))
}

/** Carries the wire's events to the subscriber, until one of the two has had enough. Never rejects. */
async function pump(call: Call, line: Line, answer: Answer): Promise<void> {
  const { context, subscriber } = call
  const { abort, watch, outcome } = line
  let stopDraining: Cancel | undefined
  try {
    const { body, names, betas } = call.render(call.request, context.clock.now())
    const reply = startReply(names)
    const events = await call.client.messages.create(
      body,
      callOptions(call.options, betas, { ...line, answer }),
    )
    watch.allow(call.options.idleTimeoutMs ?? idleTimeoutDefaultMs)
    let heard = false
    for await (const event of events) {
      heard = true
      if (!answer.observed) watch.heard()
      // What follows the end is only waited for: a connection that is read to its end can be used again.
      if (outcome.finished) continue
      if (subscriber.closed) return
      deliver(reply, event as WireEvent, subscriber)
      if (!reply.finished || subscriber.closed) continue
      outcome.finished = true
      stopDraining = context.clock.schedule(drainMs, () => abort.abort())
      subscriber.complete()
    }
    if (!reply.finished) subscriber.error(endedEarly(heard, answer))
  } catch (error) {
    if (!subscriber.closed) {
      subscriber.error(providerErrorOf(error, { now: context.clock.now(), requestId: answer.requestId }))
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

function callOptions(
  options: AnthropicOptions,
  betas: readonly string[],
  { abort, watch, answer }: Line & { readonly answer: Answer },
): AnthropicCallOptions {
  const observe: AnthropicMiddleware = async (request, next) => {
    const response = await next(request)
    const { headers } = response
    // Bedrock has a name of its own for it.
    answer.requestId = headers.get('request-id') ?? headers.get('x-amzn-requestid') ?? undefined
    answer.contentType = headers.get('content-type') ?? undefined
    const observed = observedResponse(response, () => watch.heard())
    answer.observed = observed !== response
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
