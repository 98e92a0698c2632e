import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server'
import type { ResultPart } from '@tallystick/core/vocabulary'
import type { Ending } from '../../execution/outcome.ts'

/** The ending of a call as a client reads it. */
export function servedResult({ outcome, content }: Ending): CallToolResult {
  return { content: content.map(blockOf), ...(outcome !== 'success' && { isError: true }) }
}

function blockOf(part: ResultPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { mediaType } = part
  if ('url' in part && part.url !== undefined) {
    return { type: 'resource_link', uri: part.url, name: part.url, mimeType: mediaType }
  }
  if (!('data' in part) || part.data === undefined) {
    return { type: 'text', text: `(${mediaType}, which a provider of models keeps.)` }
  }
  if (part.type === 'image') return { type: 'image', data: part.data, mimeType: mediaType }
  if (mediaType.startsWith('audio/')) return { type: 'audio', data: part.data, mimeType: mediaType }
  const uri = `file:///${encodeURIComponent(part.name ?? 'result')}`
  return { type: 'resource', resource: { uri, blob: part.data, mimeType: mediaType } }
}
