import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server'
import type { ResultPart } from '@tallystick/core/vocabulary'
import type { Ending } from '../../execution/outcome.ts'

/** The ending of a call as a client reads it. */
export function servedResult({ outcome, content }: Ending): CallToolResult {
  return { content: content.map(blockOf), ...(outcome !== 'success' && { isError: true }) }
}

function blockOf(part: ResultPart): ContentBlock {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const { mediaType: mimeType, url, data } = part
  if (url !== undefined) return { type: 'resource_link', uri: url, name: url, mimeType }
  if (data === undefined) {
    return { type: 'text', text: `(${mimeType}, which a provider of models keeps.)` }
  }
  if (part.type === 'image') return { type: 'image', data, mimeType }
  if (mimeType.startsWith('audio/')) return { type: 'audio', data, mimeType }
  const uri = `file:///${encodeURIComponent(part.name ?? 'result')}`
  return { type: 'resource', resource: { uri, blob: data, mimeType } }
}
