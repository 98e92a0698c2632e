import type { Usage } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { WireLine } from '../client/wire.ts'

/** Tokens of the prompt and of the reply, where the server counted them. */
export function usageOf(inputTokens: number | undefined, outputTokens: number | undefined): Usage {
  return {
    ...(inputTokens !== undefined && { inputTokens }),
    ...(outputTokens !== undefined && { outputTokens }),
  }
}

/** The numbers of the last line: tokens, and durations in nanoseconds. */
export function countsOf(line: WireLine): JsonObject {
  return Object.fromEntries(Object.entries(line).filter(([, value]) => typeof value === 'number'))
}
