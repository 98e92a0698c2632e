const encoder = new TextEncoder()

/** Events as an SSE body, each with its type as the event's name. */
export function sseBytes(events: readonly unknown[]): Uint8Array {
  return encoder.encode(events.map(sseRecord).join(''))
}

export function sseRecord(event: unknown): string {
  return `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** An event without a name, as Chat Completions sends it. */
export function dataRecord(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

/** Chunks as a body of Chat Completions, which says when it is done. */
export function chatBytes(chunks: readonly unknown[]): Uint8Array {
  return encoder.encode(`${chunks.map(dataRecord).join('')}data: [DONE]\n\n`)
}

/** The same bytes in pieces that end at the given places; places beyond the end, or given twice, count for nothing. */
export function splitAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const borders = [...new Set(places)]
    .filter((place) => place > 0 && place < bytes.length)
    .sort((a, b) => a - b)
  return [0, ...borders].map((from, place) => bytes.subarray(from, borders[place] ?? bytes.length))
}

/** The same bytes, every `size` of them a piece. */
export function inPiecesOf(size: number, bytes: Uint8Array): Uint8Array[] {
  const places = Array.from({ length: Math.ceil(bytes.length / size) }, (_, place) => place * size)
  return splitAt(bytes, places)
}
