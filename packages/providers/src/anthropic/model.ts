import type { Model } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { Observable } from 'rxjs'
import { lateClient } from '../shared/client/late-client.ts'
import { ownOptions, type RecordedOptions, recordedOptions } from '../shared/options/pinned-options.ts'
import { collectWarnings, warnOnce } from '../shared/options/warning.ts'
import { ownSecrets } from '../shared/secrets/own-secrets.ts'
import { type Connection, longestTimerMs } from '../shared/stream/connection.ts'
import { forwardEvents } from '../shared/stream/forward-events.ts'
import { observedResponse } from '../shared/stream/observed-response.ts'
import { type AnthropicCallOptions, type AnthropicMiddleware, officialClient } from './client/client.ts'
import { failures, providerErrorOf } from './client/failure.ts'
import { sdk } from './client/sdk.ts'
import { api, provider, type WireThinking } from './client/wire.ts'
import { takesSampling } from './options/api-version.ts'
import { checkOptions } from './options/option-check.ts'
import type { AnthropicOptions, AnthropicThinking } from './options/options.ts'
import { webSearchesOf } from './options/web-searches.ts'
import { replyReader } from './reply/signals.ts'
import { requestRenderer } from './request/request.ts'

/** What decides how the model is to work, and what else is sent. */
const recorded: RecordedOptions<AnthropicOptions> = {
  pinned: [
    ...(['maxOutputTokens', 'thinking', 'effort', 'promptCache', 'citations', 'strictTools'] as const),
    ...(['eagerToolInputs', 'contextEdits', 'betas'] as const),
  ],
  added: { mcpServers: 'mcp_servers' },
  written: [
    ...(['system', 'tools', 'tool_choice', 'max_tokens', 'thinking', 'output_config', 'container'] as const),
    ...(['mcp_servers', 'context_management', 'stop_sequences', 'temperature', 'top_p'] as const),
  ],
}

/**
 * A model of Anthropic, over its Messages API and its official SDK. Nothing is sent, and no key looked for, before
 * `stream` is subscribed to.
 *
 * Throws `ConfigurationError` for options that cannot work.
 */
export function anthropic(modelId: string, given: AnthropicOptions = {}): Model {
  checkOptions(modelId, given)
  const options = ownOptions('anthropic', given)
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
  })
  const report = warnOnce(options.onWarning)
  const secrets = ownSecrets(options)
  const late = lateClient({ given: options.client, connect: () => officialClient(options, secrets) })
  return {
    provider,
    api,
    modelId,
    ...recordedOptions(options, recorded),
    ...webSearchesOf(options),
    stream: (request, context) =>
      secrets.struckFrom(
        collectWarnings(report, (warn) =>
          late({
            failure: (error) => providerErrorOf(error, { now: context.clock.now() }),
            over: (client) =>
              new Observable((subscriber) =>
                forwardEvents({
                  context,
                  subscriber,
                  failures,
                  timeouts: options,
                  connect: async (connection) => {
                    const { body, names, betas } = render(request, { now: context.clock.now(), warn })
                    const asked = client.messages.create(body, callOptions(options, betas, connection))
                    return { events: await asked, reader: replyReader(names) }
                  },
                }),
              ),
          }),
        ),
      ),
  }
}

function wireThinking(thinking: AnthropicThinking | undefined): WireThinking | undefined {
  if (thinking?.type === 'adaptive') {
    return { type: thinking.type, ...omitUndefined({ display: thinking.display }) }
  }
  if (thinking?.type !== 'enabled') return thinking
  const { type, display, budgetTokens } = thinking
  return { type, ...omitUndefined({ display }), budget_tokens: budgetTokens }
}

function callOptions(
  options: AnthropicOptions,
  betas: readonly string[],
  connection: Connection,
): AnthropicCallOptions {
  const observe: AnthropicMiddleware = async (request, next) => {
    const response = await next(request)
    const { headers } = response
    // Bedrock has a name of its own for it.
    connection.facts.requestId = headers.get('request-id') ?? headers.get('x-amzn-requestid') ?? undefined
    connection.facts.contentType = headers.get('content-type') ?? undefined
    const observed = observedResponse(response, {
      onBytes(bytes) {
        connection.watch.signOfLife()
        connection.tail.saw(bytes)
      },
      onEnd: () => connection.tail.ended(),
    })
    connection.observed = observed !== response
    return observed
  }
  return {
    signal: connection.abort.signal,
    maxRetries: 0,
    timeout: longestTimerMs,
    headers: {
      ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }),
      ...options.headers,
    },
    middleware: [observe],
  }
}
