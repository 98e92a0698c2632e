import type { JsonObject, UserMessage, ToolResult } from '@tallystick/core/vocabulary'
import { type Carried, carried, carriedResult, type Carrier } from '../../openai/request/media.ts'

/** What this wire takes of a service. */
function carrierOf(provider: string): Carrier {
  return { provider, documentUrls: true, imageIds: true, audio: false }
}

/** What a user says, as an item. */
export function userItem({ parts }: UserMessage, provider: string): JsonObject {
  const pieces = carried(parts, carrierOf(provider))
  const [first] = pieces
  // Left out, it would leave the assistant the last word, which is another request.
  if (first === undefined) return { role: 'user', content: '(The message is empty.)' }
  const alone = pieces.length === 1 && first.kind === 'text'
  return { role: 'user', content: alone ? first.text : pieces.map(inputPiece) }
}

function inputPiece(piece: Carried): JsonObject {
  switch (piece.kind) {
    case 'text':
      return { type: 'input_text', text: piece.text }
    case 'image':
      return { type: 'input_image', image_url: piece.url, detail: piece.detail ?? 'auto' }
    case 'pdf':
      return piece.data === undefined
        ? { type: 'input_file', file_url: piece.url ?? '' }
        : { type: 'input_file', filename: piece.name, file_data: piece.data }
    case 'kept':
      return piece.what === 'file'
        ? { type: 'input_file', file_id: piece.fileId }
        : { type: 'input_image', file_id: piece.fileId, detail: piece.detail ?? 'auto' }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: piece.data, format: piece.format } }
  }
}

/** What answers a call, as an item; its id, and its kind, the whole request decides. */
export function resultItem({ toolCallId, outcome, content }: ToolResult, provider: string): JsonObject {
  const pieces = carriedResult(outcome, content, carrierOf(provider))
  const texts = pieces.map((piece) => (piece.kind === 'text' ? piece.text : undefined))
  const plain = texts.every((text) => text !== undefined)
  const output = plain ? texts.join('\n\n') : pieces.map(inputPiece)
  return { type: 'function_call_output', call_id: toolCallId, output }
}
