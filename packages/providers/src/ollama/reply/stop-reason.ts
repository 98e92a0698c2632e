import type { StopReason } from '@tallystick/core/vocabulary'

/** What the end of a reply is judged by. */
export interface Ending {
  readonly raw: string | undefined
  readonly hadCalls: boolean
  /** Tokens of the prompt and of the reply together, where both are known. */
  readonly tokens: number | undefined
  readonly contextTokens: number | undefined
}

/**
 * The vendor's `done_reason` in our words. It is `stop` for calls too, and `length` whether the asked-for length is
 * reached or the context is full. `load` and `unload` answer a request that asked for nothing.
 */
export function stopReasonOf({ raw, hadCalls, tokens, contextTokens }: Ending): StopReason {
  if (raw === 'stop') return hadCalls ? 'tool_use' : 'end'
  if (raw !== 'length') return 'other'
  const full = tokens !== undefined && contextTokens !== undefined && tokens >= contextTokens
  return full ? 'context_exceeded' : 'max_tokens'
}
