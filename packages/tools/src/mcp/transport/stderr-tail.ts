import { cleanText } from '../text/clean-text.ts'

const maxBytes = 8_192
const maxCharacters = 1_500

/** The last of what a server wrote to its standard error, for the errors that are about it. */
export interface StderrTail {
  write(chunk: Uint8Array): void
  /** The last lines, without characters that a terminal obeys; empty where nothing was written. */
  text(): string
}

/** Keeps the last 8 kB, however much is written. */
export function stderrTail(): StderrTail {
  let kept: Buffer = Buffer.alloc(0)
  let isCut = false
  return {
    write(chunk) {
      isCut ||= kept.length + chunk.length > maxBytes
      const all = Buffer.concat([kept, chunk.subarray(-maxBytes)])
      // A copy: a slice would keep the whole chunk in memory.
      kept = Buffer.from(all.subarray(-maxBytes))
    },
    text() {
      const lines = kept.toString('utf8').split('\n')
      // The first line may be the end of one.
      const text = (isCut ? lines.slice(1) : lines).join('\n').trim().slice(-maxCharacters)
      return cleanText(text, maxCharacters)
    },
  }
}
