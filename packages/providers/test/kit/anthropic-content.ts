import type { Loose } from './loose.ts'

/** The content that a body of Anthropic shows, put together without an adapter: each block as it began, with its deltas. */
export function contentOf(bytes: Uint8Array): Loose[] {
  const blocks: Loose[] = []
  for (const line of new TextDecoder().decode(bytes).split('\n')) {
    if (!line.startsWith('data:')) continue
    const event = JSON.parse(line.slice(5))
    if (event.type === 'message_start') blocks.push(...event.message.content)
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block }
    if (event.type !== 'content_block_delta') continue
    const { type, ...change } = event.delta
    const block = blocks[event.index]
    if (type === 'input_json_delta') block.json = (block.json ?? '') + change.partial_json
    else if (type === 'citations_delta') block.citations.push(change.citation)
    else if (type === 'signature_delta') block.signature = change.signature
    else for (const [key, value] of Object.entries(change)) block[key] = (block[key] ?? '') + value
  }
  return blocks.map(({ json, citations, ...block }) => ({
    ...block,
    ...(json && { input: JSON.parse(json) }),
    ...(citations?.length && { citations }),
  }))
}
