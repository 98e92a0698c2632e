import { option, requireOptions } from '@tallystick/core/kit'

const byteChunks = option.valueThat(
  'a stream of bytes, such as createReadStream(path)',
  (value) => typeof value === 'object' && value !== null && Symbol.asyncIterator in value,
)

const lineFeed = 0x0a

/**
 * The lines of a stream of bytes, such as a file that is read, each without its line feed. Lines end at a line feed and
 * nowhere else: JSON may hold the other characters that some readers of lines end them at. Holds one line at a time.
 */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  requireOptions('linesOf', byteChunks, chunks, 'the first argument')
  let begun: Uint8Array[] = []
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(lineFeed); end !== -1; end = chunk.indexOf(lineFeed, from)) {
      yield Buffer.concat([...begun, chunk.subarray(from, end)])
      begun = []
      from = end + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}
