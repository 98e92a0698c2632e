import type { RuntimeEvent } from '@tallystick/core'
import type { Observable } from 'rxjs'
import { mappedEvents } from '../protocols/mapped-events.ts'
import { chatChunkTable, type ChatChunk, type ChatNames } from './chat-chunks.ts'
import { responseTable, type ResponseEvent, type ResponseNames } from './response-events.ts'

/** Maps the events of a run, from its first, to events of OpenAI's Responses API. */
export function toOpenAiResponse(
  events$: Observable<RuntimeEvent>,
  names: ResponseNames = {},
): Observable<ResponseEvent> {
  return mappedEvents(events$, () => responseTable(names))
}

/** Maps the events of a run, from its first, to chunks of OpenAI's Chat Completions. */
export function toOpenAiChat(
  events$: Observable<RuntimeEvent>,
  names: ChatNames = {},
): Observable<ChatChunk> {
  return mappedEvents(events$, () => chatChunkTable(names))
}
