import type { RuntimeEvent } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { Observable } from 'rxjs'
import { mappedEvents } from '../protocols/mapped-events.ts'
import { requireEvents } from '../protocols/require-events.ts'
import { chatChunkTable, type ChatChunk, type ChatNames } from './chat-chunks.ts'
import { responseTable, type ResponseEvent, type ResponseNames } from './response-events.ts'

const { anyObject, anyText, fields, maybe, trueOrFalse } = option

const responseNames = fields<ResponseNames>({
  model: maybe(anyText),
  previousResponseId: maybe(anyText),
  metadata: maybe(anyObject),
})

const chatNames = fields<ChatNames>({ model: maybe(anyText), includesUsage: maybe(trueOrFalse) })

/** Maps the events of a run, from its first, to events of OpenAI's Responses API. */
export function toOpenAiResponse(
  events$: Observable<RuntimeEvent>,
  names: ResponseNames = {},
): Observable<ResponseEvent> {
  requireEvents('toOpenAiResponse', events$)
  requireOptions('toOpenAiResponse', responseNames, names)
  return mappedEvents(events$, () => responseTable(names))
}

/** Maps the events of a run, from its first, to chunks of OpenAI's Chat Completions. */
export function toOpenAiChat(
  events$: Observable<RuntimeEvent>,
  names: ChatNames = {},
): Observable<ChatChunk> {
  requireEvents('toOpenAiChat', events$)
  requireOptions('toOpenAiChat', chatNames, names)
  return mappedEvents(events$, () => chatChunkTable(names))
}
