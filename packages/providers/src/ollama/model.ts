import {
  ConfigurationError,
  type JsonObject,
  type Model,
  type ModelContext,
  type ModelRequest,
  type ModelSignal,
} from '@tallystick/core'
import { Observable, type Subscriber } from 'rxjs'
import { drainMs, idleTimeoutDefaultMs, type Line, openLine } from '../shared/stream/open-connection.ts'
import { requireModelOptions } from '../shared/options/model-options.ts'
import { type OwnSecrets, ownSecrets } from '../shared/secrets/own-secrets.ts'
import { pinnedOptions } from '../shared/options/pinned-options.ts'
import { warnOnce, withWarnings } from '../shared/options/warning.ts'
import { ollamaOptions } from './options/option-check.ts'
import { hostOf, isAddress, type OllamaClientOptions, openChat } from './client/client.ts'
import { providerErrorOf, silentReply, truncatedReply } from './client/failure.ts'
import { type OllamaWarning, requestRenderer, type RequestRenderer } from './request/request.ts'
import { sdk } from './client/sdk.ts'
import { readLine, startReply } from './reply/signals.ts'
import { api, provider, type WireThinking } from './client/wire.ts'

/** How `ollama()` calls its model. Everything may be left out. */
export interface OllamaOptions extends OllamaClientOptions {
  /**
   * The context window to ask for, in tokens: prompt and reply together. 16 384. The server's own choice is small and a
   * matter of the machine's memory; a prompt that does not fit ends in a failure of class `context_overflow` here, while
   * the server by itself would drop the oldest messages and say nothing. Another size loads the model again.
   */
  readonly contextTokens?: number | undefined
  /** Output tokens of one reply at most, where the request does not say. None: up to the end of the context. */
  readonly maxOutputTokens?: number | undefined
  /** Whether to think, or how hard. Unset: models that can, do. A model that cannot refuses anything but `false`. */
  readonly thinking?: WireThinking | undefined
  /** How long the model stays in memory afterwards, such as `'10m'`, or in seconds; `-1` for ever. The server's own: 5 minutes. */
  readonly keepAlive?: string | number | undefined
  /** Settings of the model by the vendor's own names, such as `temperature`, `top_p`, `seed`, `stop`. */
  readonly parameters?: JsonObject | undefined
  /** Fields of the request's body that no option covers. They win over those that one does. */
  readonly extraBody?: JsonObject | undefined
  /** Hears what a request could not be told, each thing once for a model. Must not throw. */
  readonly onWarning?: ((warning: OllamaWarning) => void) | undefined
  /** The longest wait for an answer to begin, in milliseconds, the loading of the model included. 5 minutes, which is also where Node's own fetch gives up. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}

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

function checkOptions(modelId: string, options: OllamaOptions): void {
  requireModelOptions('ollama', ollamaOptions, { modelId, options })
  checkAddress(options)
  sdk.require('ollama')
}

function checkAddress(options: OllamaClientOptions): void {
  const host = hostOf(options)
  if (host === undefined) return
  if (/^([a-z][a-z0-9+.-]*:\/\/)?[^/?#]*@/i.test(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) with a user and a password in it, which fetch refuses. Pass an Authorization header in the option headers.',
    )
  }
  if (!isAddress(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) that is no address, so no call could succeed. Pass one such as "http://127.0.0.1:11434".',
    )
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
