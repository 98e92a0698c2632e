import type { Model } from '@tallystick/core'
import { api, failures, openChat, provider } from './ollama/client.ts'
import { checkOptions, type OllamaOptions } from './ollama/options.ts'
import { renderRequest } from './ollama/request.ts'
import { OllamaReader } from './ollama/stream.ts'
import { forwardEvents } from './shared/call.ts'
import { createModel } from './shared/model.ts'
import { copyOptions, type RecordedOptions } from './shared/options.ts'

export type { OllamaOptions, OllamaWarning } from './ollama/options.ts'
export type { OllamaClientOptions } from './ollama/client.ts'

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
  const options = copyOptions('ollama', given)
  const settings = { ...options, modelId, contextTokens: options.contextTokens ?? 16_384 }
  return createModel({
    provider,
    api,
    modelId,
    options,
    recorded,
    failures,
    client: {},
    start: ({ request, context, subscriber, warn, secrets }) =>
      forwardEvents({
        context,
        subscriber,
        failures,
        timeouts: options,
        connect: async (connection) => {
          const { body, names } = renderRequest(request, { ...settings, warn })
          connection.observed = true
          const events = await openChat(body, {
            options: { ...options, fetch: secrets.noting(options.fetch ?? globalThis.fetch) },
            signal: connection.abort.signal,
            now: () => context.clock.now(),
            onBytes: () => connection.watch.signOfLife(),
          })
          return { events, reader: new OllamaReader(names, body) }
        },
      }),
  })
}
