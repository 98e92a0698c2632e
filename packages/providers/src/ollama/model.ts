import type { Model } from '@tallystick/core'
import { Observable } from 'rxjs'
import { ownOptions, type RecordedOptions, recordedOptions } from '../shared/options/pinned-options.ts'
import { collectWarnings, warnOnce } from '../shared/options/warning.ts'
import { ownSecrets } from '../shared/secrets/own-secrets.ts'
import { forwardEvents } from '../shared/stream/forward-events.ts'
import { openChat } from './client/client.ts'
import { failures } from './client/failure.ts'
import { api, provider } from './client/wire.ts'
import { checkOptions } from './options/option-check.ts'
import type { OllamaOptions } from './options/options.ts'
import { replyReader } from './reply/signals.ts'
import { requestRenderer } from './request/request.ts'

/** What decides how the model is to work, and what else is sent. */
const recorded: RecordedOptions<OllamaOptions> = {
  pinned: ['contextTokens', 'maxOutputTokens', 'thinking', 'parameters'],
  added: { keepAlive: 'keep_alive' },
  written: ['messages', 'tools', 'think', 'format', 'options', 'keep_alive', 'truncate', 'shift'],
}

/**
 * A model on an Ollama server, over `/api/chat` and the official client. Nothing is sent before `stream` is subscribed
 * to; unsubscribing closes the connection, which is what stops the model.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function ollama(modelId: string, given: OllamaOptions = {}): Model {
  checkOptions(modelId, given)
  const options = ownOptions('ollama', given)
  const render = requestRenderer({
    modelId,
    contextTokens: options.contextTokens ?? 16_384,
    maxOutputTokens: options.maxOutputTokens,
    thinking: options.thinking,
    keepAlive: options.keepAlive,
    parameters: options.parameters,
    extraBody: options.extraBody,
  })
  const report = warnOnce(options.onWarning)
  const secrets = ownSecrets(options)
  return {
    provider,
    api,
    modelId,
    ...recordedOptions(options, recorded),
    stream: (request, context) =>
      secrets.struckFrom(
        collectWarnings(
          report,
          (warn) =>
            new Observable((subscriber) =>
              forwardEvents({
                context,
                subscriber,
                failures,
                timeouts: options,
                connect: async (connection) => {
                  const { body, names } = render(request, { warn })
                  connection.observed = true
                  const events = await openChat(body, {
                    options: { ...options, fetch: secrets.noting(options.fetch ?? globalThis.fetch) },
                    signal: connection.abort.signal,
                    now: () => context.clock.now(),
                    onBytes: () => connection.watch.signOfLife(),
                  })
                  return { events, reader: replyReader(names, body) }
                },
              }),
            ),
        ),
      ),
  }
}
