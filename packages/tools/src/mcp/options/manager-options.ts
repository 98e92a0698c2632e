import type { Clock } from '@tallystick/core'
import { option, requireOptions, type Host } from '@tallystick/core/kit'
import type { TraceparentOf } from '../../execution/traceparent.ts'
import type { Environment } from './child-environment.ts'
import type { McpHooks, SamplingLimits } from './hooks.ts'
import { type McpServer, mcpServer } from './server-options.ts'

/** The servers, and what they all share. */
export interface McpOptions extends McpHooks {
  /** The servers by their names, which are part of the names of their tools. */
  readonly servers: Readonly<Record<string, McpServer>>
  /** How much of a model a server may use within one call: `maxPerCall` answers (3) of `maxTokens` tokens each (4,096). */
  readonly sampleLimits?:
    | { readonly [Name in keyof SamplingLimits]?: SamplingLimits[Name] | undefined }
    | undefined
  /**
   * Digests of known tools, by the tools' names, as `pins` of a manager gives them: a tool with another digest needs an
   * approval. Default: what each server lists first.
   */
  readonly pins?: Readonly<Record<string, string>> | undefined
  /** The `traceparent` that a call carries in its `_meta`. Default: none is sent. */
  readonly traceparent?: TraceparentOf | undefined
  /** Waits after a connection was lost. */
  readonly reconnect?:
    | {
        /** Milliseconds before the first attempt; each wait is twice the one before. Default 250. */
        readonly baseMs?: number | undefined
        /** Milliseconds of the longest wait. Default 15 000. */
        readonly capMs?: number | undefined
        /** Attempts in a row that may fail; afterwards the next call tries again. Default 5. */
        readonly maxAttempts?: number | undefined
      }
    | undefined
  /** The environment of which servers get `PATH` and the like. Default: that of this process. */
  readonly environment?: Environment | undefined
  /** The clock that waits are measured by. Default: the host's. */
  readonly timers?: Pick<Clock, 'schedule'> | undefined
  /** Spreads the attempts to reconnect. Default: the host's. */
  readonly random?: Host['random'] | undefined
}

const { anyFunction, anyObject, fields, filledText, maybe, numberFrom, recordOf } = option

const managerOptions = fields<McpOptions>(
  {
    servers: recordOf(mcpServer),
    pins: maybe(recordOf(filledText)),
    reconnect: maybe(
      fields<NonNullable<McpOptions['reconnect']>>({
        baseMs: maybe(numberFrom(1)),
        capMs: maybe(numberFrom(1)),
        maxAttempts: maybe(numberFrom(0, { whole: true })),
      }),
    ),
    traceparent: maybe(anyFunction),
    environment: maybe(anyObject),
    timers: maybe(anyObject),
    random: maybe(anyFunction),
    elicit: maybe(anyFunction),
    sample: maybe(anyFunction),
    sampleLimits: maybe(
      fields<NonNullable<McpOptions['sampleLimits']>>({
        maxPerCall: maybe(numberFrom(0, { whole: true })),
        maxTokens: maybe(numberFrom(1, { whole: true })),
      }),
    ),
  },
  {
    mcpServers: 'servers',
    onElicitation: 'elicit',
    elicitation: 'elicit',
    sampling: 'sample',
    env: 'environment',
  },
)

/** Refuses options that cannot work. Throws `ConfigurationError`. */
export function requireMcpOptions(options: McpOptions): void {
  requireOptions('mcpTools', managerOptions, options)
}
