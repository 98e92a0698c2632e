import type { Json, JsonObject, Opaque, ReplyPart, RequestedCall } from '@tallystick/core/vocabulary'
import { api, type OpaqueData } from '../client/wire.ts'
import { citationsIn, sourcesIn } from './citations.ts'

/** A part of the reply while it streams. */
export interface Block {
  readonly part: number
  readonly kind: 'text' | 'reasoning' | 'call' | 'provider'
  text: string
  /** The last that was said of it: each word replaces the one before, as in the AI SDK itself. */
  metadata: JsonObject | undefined
  citations: Json | undefined
  /** The whole part, where it is the provider's own. */
  whole: JsonObject | undefined
  call: RequestedCall | undefined
}

/** What its provider needs back of a block. */
export function opaqueOf(provider: string, block: Block): { readonly opaque?: Opaque } {
  const { metadata, citations, whole } = block
  if (metadata === undefined && citations === undefined && whole === undefined) return {}
  const data: OpaqueData = {
    ...(metadata && { metadata: metadata as OpaqueData['metadata'] & JsonObject }),
    ...(citations !== undefined && { citations }),
    ...(whole && { part: whole }),
  }
  return { opaque: { provider, api, data } }
}

/** The block as a part of the reply; none for a call that never became whole. */
export function partOf(provider: string, block: Block): ReplyPart | undefined {
  const { part, kind, text } = block
  const { opaque } = opaqueOf(provider, block)
  switch (kind) {
    case 'text': {
      const citations = citationsIn(block.citations)
      return { type: kind, text, part, ...(citations.length > 0 && { citations }), ...(opaque && { opaque }) }
    }
    case 'reasoning':
      return { type: kind, text, part, ...(opaque && { opaque }) }
    case 'call':
      return block.call && { ...block.call, part }
    case 'provider': {
      const type = block.whole?.['type']
      const sources = type === 'source' ? sourcesIn(block.whole) : []
      const shown = sources.length > 0 && { sources }
      return (
        opaque && {
          type: 'provider',
          kind: typeof type === 'string' ? type : 'unknown',
          opaque,
          part,
          ...shown,
        }
      )
    }
  }
}
