import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warning } from '../../shared/options/warning.ts'
import type { OllamaClientOptions } from '../client/client.ts'
import type { WireThinking } from '../client/wire.ts'
import type { Timeouts } from '../../shared/stream/silence-watch.ts'

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
   * Whether the model thinks, or how hard. Default: models that can, do. A model that cannot think refuses any value
   * but `false`.
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
