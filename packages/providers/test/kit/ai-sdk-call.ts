import type { ModelRequest } from '@tallystick/core'
import * as source from '../../src/ai-sdk/request.ts'

export type { Reader } from '../../src/ai-sdk/request.ts'
export type CallSettings = Omit<source.CallSettings, 'warn'>

/** A call of a model of the AI SDK, whatever it warns of. */
export function renderCall(
  request: ModelRequest,
  reader: source.Reader,
  given: CallSettings,
): ReturnType<typeof source.renderCall> {
  return source.renderCall(request, reader, { ...given, warn: () => {} })
}
