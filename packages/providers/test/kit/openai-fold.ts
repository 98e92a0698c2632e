import type { ModelSignal } from '@tallystick/core/vocabulary'
import type { ReplyReader } from '../../src/shared/reply.ts'
import { ChatReader } from '../../src/openai/chat-stream.ts'
import type { StreamEnding } from '../../src/shared/body.ts'
import { ResponsesReader } from '../../src/openai/responses-stream.ts'
import type { Loose } from './loose.ts'
import type { ReplyContext as ChatContext } from '../../src/openai/chat-request.ts'
import type { ReplyContext } from '../../src/openai/responses-request.ts'

interface Folded {
  readonly signals: ModelSignal[]
  /** Whether the reply was whole at the end of the stream. */
  readonly whole: boolean
  readonly error?: unknown
}

function fold(reader: ReplyReader, events: readonly object[], ending: StreamEnding = 'clean'): Folded {
  const signals: ModelSignal[] = []
  try {
    for (const event of events) {
      signals.push(...reader.read(event))
      if (reader.failure) throw reader.failure
    }
    const last = reader.end?.(ending)
    signals.push(...(last ?? []))
    return { signals, whole: reader.finished || last !== undefined }
  } catch (error) {
    return { signals, whole: false, error }
  }
}

/** The tools of the requests that these replies answer. */
export const tools: Pick<ReplyContext, 'knows' | 'takesNothing'> = {
  knows: (name) => ['get_weather', 'get_time', 'query', 'a', 'b', 'look', 'pay'].includes(name),
  takesNothing: (name) => name === 'get_time',
}

/** All signals of a stream of the Responses API. */
export function foldResponse(events: readonly object[], given: Partial<ReplyContext> = {}): Folded {
  return fold(
    new ResponsesReader({
      provider: 'openai',
      toolName: (name) => name,
      customField: () => 'sql',
      cleaned: (_, input) => input,
      ...tools,
      approvalTool: 'mcp_approval',
      nativeTools: {},
      hasProviderTools: false,
      kept: () => undefined,
      providerState: () => undefined,
      ...given,
    }),
    events,
  )
}

/** All signals of a stream of Chat Completions. */
export function foldChat(
  chunks: readonly object[],
  given: Partial<ChatContext> = {},
  ending?: StreamEnding,
): Folded {
  return fold(
    new ChatReader({
      provider: 'openai',
      toolName: (name) => name,
      customField: () => 'sql',
      cleaned: (_, input) => input,
      ...tools,
      finishReasonOptional: false,
      ...given,
    }),
    chunks,
    ending,
  )
}

/** What a part of these wires carries. */
export const carriedAs = (api: 'responses' | 'chat', data: Loose) => ({ provider: 'openai', api, data })
