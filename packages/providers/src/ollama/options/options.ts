import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warning } from '../../shared/options/warning.ts'
import type { OllamaClientOptions } from '../client/client.ts'
import type { WireThinking } from '../client/wire.ts'

/** Something that a request asked for and that this wire cannot express. The call goes out without it. */
export interface OllamaWarning extends Warning {
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'tool_choice'
    | 'parallel_tool_calls'
    | 'output_schema'
    | 'model_settings'
}

/** How `ollama()` calls its model. Everything may be left out. */
export interface OllamaOptions extends OllamaClientOptions {
  /**
   * The context window to ask for, in tokens: prompt and reply together. Default 16 384. The server's own default is
   * small and depends on the memory of the machine; a prompt that does not fit fails here as `context_overflow`, while
   * the server's default is to drop the oldest messages silently. Another size loads the model again.
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
  /** Gets what a request could not express, each thing once for a model. Must not throw. */
  readonly onWarning?: ((warning: OllamaWarning) => void) | undefined
  /** The longest wait for an answer to begin, in milliseconds, the loading of the model included. 5 minutes, which is also where Node's own fetch gives up. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}
