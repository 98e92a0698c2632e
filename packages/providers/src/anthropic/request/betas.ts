import { getOwn } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { textAt } from '../../shared/json/json-reading.ts'
import type { WireRequest } from '../client/wire.ts'

const mcpClient = 'mcp-client-2025-11-20'
const compaction = 'compact-2026-01-12'
const thinkingBinding = 'thinking-binding-controls-2026-08-01'

/** Blocks that need such a header in the request, from any source. */
const byBlock: { readonly [type: string]: (block: JsonObject) => string } = {
  mcp_tool_use: () => mcpClient,
  mcp_tool_result: () => mcpClient,
  mcp_tool_listing: () => 'mcp-client-2026-09-15',
  // A signed one answers a request for it, any other came with the reply after it.
  compaction: (block) => (textAt(block, 'signature') === undefined ? compaction : 'compact-2026-09-04'),
}

/** The values of the `anthropic-beta` header that a body needs, none twice, `wanted` first. */
export function betasOf(body: WireRequest, wanted: readonly string[]): readonly string[] {
  const betas = new Set(wanted)
  if (body['mcp_servers'] !== undefined) betas.add(mcpClient)
  if (body.thinking !== undefined && 'block_binding' in body.thinking) betas.add(thinkingBinding)
  for (const edit of editsOf(body)) {
    betas.add('context-management-2025-06-27')
    if (textAt(edit, 'type')?.startsWith('compact_')) betas.add(compaction)
  }
  for (const { role, content } of body.messages) {
    if (role !== 'assistant') continue
    for (const block of content) {
      const beta = getOwn(byBlock, block.type)?.(block)
      if (beta !== undefined) betas.add(beta)
    }
  }
  return [...betas]
}

function editsOf(body: WireRequest): readonly JsonObject[] {
  const management = body['context_management'] as { readonly edits?: readonly JsonObject[] } | undefined
  return management?.edits ?? []
}
