import { bareType, decodedText } from '../../shared/request/file-data.ts'
import type {
  FilePart,
  ImagePart,
  Outcome,
  ResultPart,
  UserPart,
  ToolResult,
} from '@tallystick/core/vocabulary'
import { keptFileId, leftOutText } from '../../shared/request/left-out.ts'
import { provider, type WireBlock } from '../client/wire.ts'

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)$)/

/** What a user wrote, or a tool answered, as blocks. Text that holds nothing but white space is refused, so it is left out. */
export function contentBlocks(parts: readonly (UserPart | ResultPart)[], citations: boolean): WireBlock[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return textBlock(part.text)
      case 'image':
        return imageBlock(part)
      case 'file':
        return fileBlock(part, citations)
    }
  })
}

/** A text as a block; none where there is nothing to read in it. */
export function textBlock(text: string): WireBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text: text.toWellFormed() }]
}

function imageBlock(part: ImagePart): WireBlock[] {
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return [{ type: 'image', source: { type: 'file', file_id: fileId } }]
  if (part.url !== undefined) return [{ type: 'image', source: { type: 'url', url: part.url } }]
  const mediaType = bareType(part.mediaType) === 'image/jpg' ? 'image/jpeg' : bareType(part.mediaType)
  if (!part.data || !imageTypes.has(mediaType)) return textBlock(leftOutText(part))
  return [{ type: 'image', source: { type: 'base64', media_type: mediaType, data: part.data } }]
}

function fileBlock(part: FilePart, citations: boolean): WireBlock[] {
  const mediaType = bareType(part.mediaType)
  const more = {
    ...(part.name && { title: part.name.toWellFormed() }),
    ...(citations && { citations: { enabled: true } }),
  }
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return [{ type: 'document', source: { type: 'file', file_id: fileId }, ...more }]
  if (mediaType === 'application/pdf' && part.url !== undefined) {
    return [{ type: 'document', source: { type: 'url', url: part.url }, ...more }]
  }
  if (mediaType === 'application/pdf' && part.data) {
    return [{ type: 'document', source: { type: 'base64', media_type: mediaType, data: part.data }, ...more }]
  }
  if (part.data && textTypes.test(mediaType)) {
    const data = decodedText(part.data)
    if (data.trim() !== '') {
      return [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data }, ...more }]
    }
  }
  return textBlock(leftOutText(part))
}

/** The body of a `tool_result`. An error must hold text and nothing else. */
export function resultBlock(result: ToolResult, citations: boolean): WireBlock {
  const isError = result.outcome !== 'success'
  const content = isError
    ? errorBlocks(result.outcome, result.content)
    : contentBlocks(result.content, citations)
  return {
    type: 'tool_result',
    tool_use_id: result.toolCallId,
    ...(content.length > 0 && { content }),
    ...(isError && { is_error: true }),
  }
}

function errorBlocks(outcome: Outcome, parts: readonly ResultPart[]): WireBlock[] {
  const texts = parts.flatMap((part) => textBlock(part.type === 'text' ? part.text : leftOutText(part)))
  return texts.length > 0 ? texts : textBlock(`The call ended as ${outcome}, without output.`)
}
