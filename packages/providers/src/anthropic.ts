import type { Model, ModelRequest, ProviderError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import {
  type AnthropicClient,
  type AnthropicMiddleware,
  api,
  createOfficialClient,
  provider,
  sdk,
  type WireEvent,
  type WireThinking,
} from './anthropic/client.ts'
import { failures } from './anthropic/failure.ts'
import { thinkingLeftOut } from './anthropic/messages.ts'
import {
  type AnthropicOptions,
  type AnthropicThinking,
  type AnthropicWarning,
  checkOptions,
  takesSampling,
  boundWebSearches,
} from './anthropic/options.ts'
import { type FallbackChanges, renderRequest } from './anthropic/request.ts'
import { AnthropicReader } from './anthropic/stream.ts'
import { offeredTools } from './anthropic/tools.ts'
import { type Connection, forwardEvents, longestTimerMs, observeAnswer, type Opened } from './shared/call.ts'
import { createModel, createLazyClient } from './shared/model.ts'
import { copyOptions, type RecordedOptions } from './shared/options.ts'

export type {
  AnthropicMcpServer,
  AnthropicOptions,
  AnthropicThinking,
  AnthropicWarning,
} from './anthropic/options.ts'
export type {
  AnthropicCallOptions,
  AnthropicClient,
  AnthropicClientOptions,
  AnthropicMiddleware,
} from './anthropic/client.ts'

const recorded: RecordedOptions<AnthropicOptions> = {
  pinned: [
    ...(['maxOutputTokens', 'thinking', 'effort', 'promptCache', 'citations', 'strictTools'] as const),
    ...(['eagerToolInputs', 'midConversationTools', 'contextEdits', 'betas'] as const),
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
  const options = copyOptions('anthropic', given)
  const settings = {
    ...options,
    modelId,
    maxOutputTokens: options.maxOutputTokens ?? 32_000,
    promptCache: options.promptCache ?? '5m',
    takesSampling: takesSampling(options),
    thinking: toWireThinking(options.thinking),
    bindsThinking: bindsThinking(modelId),
    keepsBinding:
      options.thinking !== undefined &&
      'onPrefixMismatch' in options.thinking &&
      options.thinking.onPrefixMismatch === 'unset',
  }
  return createModel<AnthropicOptions, AnthropicClient, AnthropicWarning>({
    provider,
    api,
    modelId,
    ...boundWebSearches(options),
    options,
    recorded,
    failures,
    client: createLazyClient('anthropic', sdk, options, (module, secrets) =>
      createOfficialClient(module, options, secrets),
    ),
    start: ({ client, request, context, subscriber, warn }) => {
      let changes: FallbackChanges = {}
      const connect = async (connection: Connection): Promise<Opened<WireEvent>> => {
        const now = context.clock.now()
        const { body, names, betas, toKeep } = renderRequest(request, { ...settings, warn }, { now, changes })
        const observe: AnthropicMiddleware = async (sent, next) => {
          const response = await next(sent)
          // Bedrock has a name of its own for it.
          const id = response.headers.get('request-id') ?? response.headers.get('x-amzn-requestid')
          return observeAnswer(connection, response, id ?? undefined)
        }
        const asked = client.messages.create(body, {
          signal: connection.abort.signal,
          maxRetries: 0,
          timeout: longestTimerMs,
          headers: { ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }), ...options.headers },
          middleware: [observe],
        })
        const notes = new Map<string, JsonObject>()
        if (changes.withoutThinking) notes.set(thinkingLeftOut, {})
        if (toKeep) notes.set(offeredTools, { tools: toKeep })
        return {
          events: (await asked) as AsyncIterable<WireEvent>,
          reader: new AnthropicReader(names, notes),
        }
      }
      return forwardEvents({
        context,
        subscriber,
        failures,
        timeouts: options,
        connect,
        fallbackRequest: (failure) => {
          const more = findFallback(failure, request)
          if (more === undefined || Object.keys(more).every((name) => name in changes)) return undefined
          changes = { ...changes, ...more }
          return connect
        },
      })
    },
  })
}

/**
 * True for a model that binds its thinking to the instructions, tools and messages before it, by the names of all clouds. An
 * unknown model shows it by refusing a request.
 */
function bindsThinking(modelId: string): boolean {
  return /claude-(?:(?:opus|sonnet|haiku)-5-[5-9]|(?:fable|mythos)-5-[1-9])(?!\d)/.test(modelId)
}

function toWireThinking(thinking: AnthropicThinking | undefined): WireThinking | undefined {
  if (thinking?.type !== 'enabled' && thinking?.type !== 'adaptive') return thinking
  const { display, onPrefixMismatch: behavior } = thinking
  const details = {
    ...omitUndefined({ display }),
    ...(behavior !== undefined &&
      behavior !== 'unset' && { block_binding: { prefix_mismatch_behavior: behavior } }),
  }
  if (thinking.type === 'adaptive') return { type: thinking.type, ...details }
  return { type: thinking.type, ...details, budget_tokens: thinking.budgetTokens }
}

/** The service refuses earlier thinking: something before it has changed, or its model or account. */
const refusedThinking = /signature|bound to|cannot be modified/i
const refusedChoice = /tool_choice/i

/** Returns how a request that was refused for one thing can do without it. */
function findFallback(
  failure: ProviderError,
  { messages, toolChoice: { type } }: ModelRequest,
): FallbackChanges | undefined {
  if (failure.class !== 'invalid_request') return undefined
  const isOfThinking = /thinking/i.test(failure.message) && refusedThinking.test(failure.message)
  const hasThinking = messages.some(
    (message) => message.role === 'assistant' && message.parts.some(({ type: part }) => part === 'reasoning'),
  )
  if (isOfThinking && hasThinking) return { withoutThinking: true }
  const isForced = type === 'any' || type === 'tool'
  return isForced && refusedChoice.test(failure.message) ? { asksInWords: true } : undefined
}
