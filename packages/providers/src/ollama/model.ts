import type { Model, ModelContext, ModelRequest, ModelSignal } from '@tallystick/core'
import { Observable, type Subscriber } from 'rxjs'
import { pinnedOptions } from '../shared/options/pinned-options.ts'
import { warnOnce, withWarnings } from '../shared/options/warning.ts'
import { type OwnSecrets, ownSecrets } from '../shared/secrets/own-secrets.ts'
import { drainMs, idleTimeoutDefaultMs, type Line, openLine } from '../shared/stream/open-connection.ts'
import { openChat } from './client/client.ts'
import { providerErrorOf, silentReply, truncatedReply } from './client/failure.ts'
import { api, provider } from './client/wire.ts'
import { checkOptions } from './options/option-check.ts'
import type { OllamaOptions } from './options/options.ts'
import { readLine, startReply } from './reply/signals.ts'
import { requestRenderer, type RequestRenderer } from './request/request.ts'

/** What decides how the model is to work. */
const pinnedNames = ['contextTokens', 'maxOutputTokens', 'thinking', 'parameters'] as const

/**
 * A model on an Ollama server, over `/api/chat` and the official client. Nothing is sent before `stream` is subscribed
 * to; unsubscribing closes the connection, which is what stops the model.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function ollama(modelId: string, options: OllamaOptions = {}): Model {
  checkOptions(modelId, options)
  const render = requestRenderer({
    modelId,
    contextTokens: options.contextTokens ?? 16_384,
    maxOutputTokens: options.maxOutputTokens,
    thinking: options.thinking,
    keepAlive: options.keepAlive,
    parameters: options.parameters,
    extraBody: options.extraBody,
    warn: warnOnce(options.onWarning),
  })
  const secrets = ownSecrets(options)
  return {
    ...{ provider, api, modelId },
    ...pinnedOptions(options, pinnedNames),
    stream: (request, context) =>
      secrets.struckFrom(
        withWarnings(
          (heeding) =>
            new Observable((subscriber) =>
              startCall({
                ...{ options, secrets, request, context, subscriber },
                render: (asked) => heeding(() => render(asked)),
              }),
            ),
        ),
      ),
  }
}

interface Call {
  readonly options: OllamaOptions
  readonly secrets: OwnSecrets
  readonly render: RequestRenderer
  readonly request: ModelRequest
  readonly context: ModelContext
  readonly subscriber: Subscriber<ModelSignal>
}

/** Starts the call and answers how to stop it. */
function startCall(call: Call): () => void {
  const { context, options, subscriber } = call
  const { responseTimeoutMs } = options
  const lineOptions = { clock: context.clock, subscriber, responseTimeoutMs, silentReply }
  return openLine(lineOptions, (line) => pump(call, line))
}

/** Carries the wire's lines to the subscriber, until one of the two has had enough. Never rejects. */
async function pump(
  { options, secrets, render, request, context, subscriber }: Call,
  line: Line,
): Promise<void> {
  const { abort, watch, outcome } = line
  try {
    const { body, names } = render(request)
    const reply = startReply(names, body)
    const emit = (signal: ModelSignal): void => subscriber.next(signal)
    const { steps, take, drain } = await openChat(body, {
      options: { ...options, fetch: secrets.noting(options.fetch ?? globalThis.fetch) },
      signal: abort.signal,
      now: () => context.clock.now(),
      onBytes: () => watch.heard(),
    })
    watch.allow(options.idleTimeoutMs ?? idleTimeoutDefaultMs)
    for await (const _ of steps) {
      for (const line of take()) {
        if (subscriber.closed) return
        readLine(reply, line, emit)
      }
      if (!reply.finished || subscriber.closed) continue
      outcome.finished = true
      subscriber.complete()
      await leaveConnection(drain, context, abort)
    }
    if (!reply.finished) subscriber.error(truncatedReply())
  } catch (error) {
    if (!subscriber.closed) subscriber.error(providerErrorOf(error))
  }
}

/** Waits for the end of an answer that has said everything: a connection that is read to its end can be used again. */
async function leaveConnection(
  drain: () => Promise<void>,
  { clock }: ModelContext,
  abort: AbortController,
): Promise<void> {
  const stop = clock.schedule(drainMs, () => abort.abort())
  await drain().catch(() => {})
  stop()
}
