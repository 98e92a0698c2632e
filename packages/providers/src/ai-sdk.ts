import type { Model } from '@tallystick/core'
import { failures } from './ai-sdk/failure.ts'
import {
  type AiSdkModel,
  type AiSdkOptions,
  type AiSdkWarning,
  api,
  checkOptions,
  type WirePart,
} from './ai-sdk/options.ts'
import { renderCall, type Reader } from './ai-sdk/request.ts'
import { AiSdkReader, isOfAnswerSchema } from './ai-sdk/stream.ts'
import { forwardEvents } from './shared/call.ts'
import { createModel } from './shared/model.ts'
import { copyOptions, type RecordedOptions } from './shared/options.ts'
import { describeSchemaMove } from './shared/request.ts'

export type { AiSdkModel, AiSdkOptions, AiSdkWarning } from './ai-sdk/options.ts'

/** The AI SDK's model does not show its own settings. */
const recorded: RecordedOptions<AiSdkOptions> = {
  pinned: ['maxOutputTokens', 'answerInInstructions'],
  added: { settings: 'settings', providerOptions: 'providerOptions' },
  written: [],
}

/**
 * Returns a model that calls any language model of the AI SDK (`anthropic('…')`, `google('…')` and others, of interface
 * version 3 or 4). The AI SDK's provider calls the vendor; the parts of the history carry what it needs back. Retries,
 * tool loop and telemetry of the AI SDK are not used. Throws `ConfigurationError` for a model of another version, and
 * for options that cannot work.
 */
export function fromAiSdk(model: AiSdkModel, given: AiSdkOptions = {}): Model {
  checkOptions(model, given)
  const options = copyOptions('fromAiSdk', given)
  const { modelId } = model
  const provider = options.provider ?? model.provider.split('.', 1)[0] ?? model.provider
  // One call may show for all later ones that the model ignores the schema of an answer.
  let dropsAnswerSchema = model.supportsStructuredOutputs === false
  return createModel<AiSdkOptions, AiSdkModel, AiSdkWarning>({
    provider,
    api,
    modelId,
    options,
    recorded,
    failures,
    client: model,
    start: ({ request, context, subscriber, warn, secrets }) =>
      forwardEvents({
        context,
        subscriber,
        failures,
        timeouts: options,
        connect: async ({ abort }) => {
          const answerInWords = options.answerInInstructions ?? dropsAnswerSchema
          if (answerInWords && request.outputSchema) {
            warn({ what: 'output_schema', message: describeSchemaMove('the provider does not pass it on') })
          }
          const settings = { ...options, answerInWords, warn }
          const { call, names } = renderCall(request, await describeReader(model, provider), settings)
          if (abort.signal.aborted) return undefined
          secrets.note({ headers: await readHeaders(model) })
          const { stream } = await model.doStream({ ...call, abortSignal: abort.signal } as never)
          const { endOfStreamIsEnd = false } = options
          const now = (): number => context.clock.now()
          return {
            events: readParts(stream as ReadableStream<WirePart>, () => (dropsAnswerSchema = true)),
            reader: new AiSdkReader({ provider, names, warn, endOfStreamIsEnd, now }),
          }
        },
      }),
  })
}

/** The headers that the AI SDK's own providers send, where their keys are. A key that is missing fails the call itself. */
async function readHeaders(model: object): Promise<unknown> {
  const config: unknown = 'config' in model ? model.config : undefined
  if (typeof config !== 'object' || config === null || !('headers' in config)) return undefined
  try {
    return await (typeof config.headers === 'function' ? config.headers() : config.headers)
  } catch {
    return undefined
  }
}

/** Reads the parts of a stream. Leaving early cancels the stream. */
async function* readParts(
  stream: ReadableStream<WirePart>,
  onDroppedSchema: () => void,
): AsyncGenerator<WirePart, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      if (value.type === 'stream-start' && value.warnings.some(isOfAnswerSchema)) onDroppedSchema()
      yield value
    }
  } finally {
    // It may have failed, or have been aborted: then there is nothing to cancel.
    await reader.cancel().catch(() => {})
  }
}

/** Providers of the AI SDK that send sounds to their vendors. */
const audioProviders = /^(google|openai\.chat)/

async function describeReader(
  { modelId, provider: own, specificationVersion, supportedUrls }: AiSdkModel,
  provider: string,
): Promise<Reader> {
  const patterns = Object.entries((await supportedUrls) ?? {})
  return {
    provider,
    modelId,
    version: specificationVersion === 'v3' ? 'v3' : 'v4',
    audio: audioProviders.test(own),
    fetches: (mediaType, url) =>
      patterns.some(
        ([pattern, urls]) =>
          covers(pattern, mediaType) && urls.some((known) => known.test(url.toLowerCase())),
      ),
  }
}

/** Matches a pattern such as `*`, `image/*` or `image/png`. */
function covers(pattern: string, mediaType: string): boolean {
  if (pattern === '*' || pattern === '*/*') return true
  return pattern.endsWith('/*') ? mediaType.startsWith(pattern.slice(0, -1)) : pattern === mediaType
}
