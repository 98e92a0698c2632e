import { ConfigurationError } from '@tallystick/core'
import { option, type Schema } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Timeouts } from '../shared/body.ts'
import { commonChecks, otherNames, requireModelOptions, type Warn, type Warning } from '../shared/options.ts'
import { readHost, isAddress, type OllamaClientOptions, sdk, type WireThinking } from './client.ts'

/** Something in a request that this wire cannot express. The request is sent without it. */
export interface OllamaWarning extends Warning {
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'tool_choice'
    | 'parallel_tool_calls'
    | 'output_schema'
    | 'model_settings'
}

/** Options of `ollama()`, all optional. */
export interface OllamaOptions extends OllamaClientOptions, Timeouts {
  /**
   * The context window to ask for, in tokens: prompt and reply together. Default 16 384. The server's own default is
   * small and depends on the memory of the machine; a prompt that does not fit fails here as `context_overflow`, while
   * the server's default is to drop the oldest messages silently. Another size loads the model again.
   */
  readonly contextTokens?: number | undefined
  /** The most output tokens of one reply, unless the request says. Default: up to the end of the context. */
  readonly maxOutputTokens?: number | undefined
  /**
   * How hard the model thinks, or `false` for not at all. Default: models that can, do. A model that cannot think refuses any
   * value but `false`.
   */
  readonly thinking?: WireThinking | undefined
  /**
   * How long the model stays in memory afterwards, such as `'10m'`, or in seconds; `-1` for ever. Default: the
   * server's, 5 minutes.
   */
  readonly keepAlive?: string | number | undefined
  /** Settings of the model by the vendor's own names, such as `temperature`, `top_p`, `seed`, `stop`. */
  readonly parameters?: JsonObject | undefined
  /** Fields of the request's body that no option covers. They replace those of options. */
  readonly extraBody?: JsonObject | undefined
  /**
   * Keeps the values of `extraBody` in the ledger. Default: `false`, which records the names of
   * their fields and a digest of each value, since a value may be secret.
   */
  readonly recordAdditions?: boolean | undefined
  /** Gets the parts of a request that the wire could not express, each once for a model. Must not throw. */
  readonly onWarning?: ((warning: OllamaWarning) => void) | undefined
}

const { anyObject, anyText, fields, maybe, numberFrom, valueThat } = option

const ollamaOptions: Schema = fields<OllamaOptions>(
  {
    ...commonChecks,
    apiKey: maybe(anyText),
    contextTokens: maybe(numberFrom(1, { whole: true })),
    thinking: maybe(
      valueThat("true, false, or how hard, such as 'high'", (value) => /^(bool|str)/.test(typeof value)),
    ),
    keepAlive: maybe(
      valueThat("a text such as '10m', or seconds", (value) => /^(string|number)$/.test(typeof value)),
    ),
    parameters: maybe(anyObject),
  },
  {
    ...otherNames,
    options: 'parameters',
    num_ctx: 'contextTokens',
    think: 'thinking',
    temperature: 'parameters.temperature',
    seed: 'parameters.seed',
    stop: 'parameters.stop',
  },
)

/** Throws `ConfigurationError` for options that cannot work. */
export function checkOptions(modelId: string, options: OllamaOptions): void {
  requireModelOptions('ollama', ollamaOptions, { modelId, options })
  sdk.require('ollama')
  const host = readHost(options)
  if (host === undefined) return
  if (/^([a-z][a-z0-9+.-]*:\/\/)?[^/?#]*@/i.test(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) with a user and a password in it, which fetch refuses. Pass an Authorization header in the option headers.',
    )
  }
  if (!isAddress(host)) {
    throw new ConfigurationError(
      'ollama() got a baseURL (or OLLAMA_HOST) that is not an address, so no call could succeed. Pass one such as "http://127.0.0.1:11434".',
    )
  }
}

/** The options of a model, as requests need them. */
export interface RenderSettings extends Pick<
  OllamaOptions,
  'extraBody' | 'keepAlive' | 'maxOutputTokens' | 'parameters' | 'thinking'
> {
  readonly modelId: string
  readonly contextTokens: number
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OllamaWarning>
}
