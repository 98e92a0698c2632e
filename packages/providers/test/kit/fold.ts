import type { ModelSignal } from '@tallystick/core/vocabulary'
import { AnthropicReader } from '../../src/anthropic/stream.ts'
import type { WireEvent } from '../../src/anthropic/client.ts'
import { createToolNames } from '../../src/shared/request.ts'

/** All signals of a stream, and the error that ended it, if one did. */
export function fold(
  events: readonly object[],
  names: readonly string[] = [],
): { signals: ModelSignal[]; error?: unknown } {
  const reply = new AnthropicReader(createToolNames(names, { maxLength: 64 }))
  const signals: ModelSignal[] = []
  try {
    for (const event of events) signals.push(...reply.read(event as WireEvent))
    return { signals }
  } catch (error) {
    return { signals, error }
  }
}

/** What a part of this wire carries. */
export const opaque = (block: object, more: object = {}) => ({
  provider: 'anthropic',
  api: 'messages',
  data: { block, ...more },
})
