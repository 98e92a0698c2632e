import type { Loose } from './loose.ts'

/** Kinds of blocks whose deltas are all known: a delta of a new kind says nothing of them. */
const known = new Set([
  'text_delta',
  'thinking_delta',
  'input_json_delta',
  'citations_delta',
  'signature_delta',
])
const closed = new Set(['text', 'thinking', 'tool_use'])

/** The content that a body of Anthropic shows, put together without an adapter: each block as it began, with its deltas. */
export function contentOf(bytes: Uint8Array): Loose[] {
  const blocks: Loose[] = []
  for (const event of eventsOf(new TextDecoder().decode(bytes))) {
    if (event.type === 'message_stop') break
    if (event.type === 'message_start') blocks.push(...event.message.content)
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block }
    if (event.type === 'content_block_delta') extend(blocks[event.index], event.delta)
  }
  return blocks.map(({ json, citations, ...block }) => ({
    ...block,
    ...(json && { input: JSON.parse(json) }),
    ...(citations?.length && { citations }),
  }))
}

function extend(block: Loose, { type, ...change }: Loose): void {
  if (closed.has(block.type) && !known.has(type)) return
  if (type === 'input_json_delta') block.json = (block.json ?? '') + change.partial_json
  else if (type === 'citations_delta') block.citations.push(change.citation)
  else for (const [key, value] of Object.entries(change)) block[key] = (block[key] ?? '') + value
}

/** The events of a stream, by the standard: lines may end in three ways, and data may span several lines. */
function eventsOf(body: string): Loose[] {
  const records = body.replaceAll(/\r\n?/g, '\n').split('\n\n')
  return records.flatMap((record) => {
    const lines = record.split('\n').filter((line) => line.startsWith('data:'))
    return lines.length === 0 ? [] : [JSON.parse(lines.map((line) => line.slice(5)).join('\n'))]
  })
}
